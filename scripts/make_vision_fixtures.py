#!/usr/bin/env python3
"""Makes the tiny image models tests/fixtures/{deit,deit-teacher,dinov2,dinov2-gated} with the results of PyTorch.

Needs torch and transformers 5. Usage: scripts/make_vision_fixtures.py [NAME...]
"""
import json
import sys

import torch
import transformers as tf
from make_model_fixtures import FOLDER, randomize
from safetensors.torch import save_file

SIZES = dict(hidden_size=24, num_hidden_layers=2, num_attention_heads=3, image_size=12, patch_size=4, num_labels=5,
             hidden_dropout_prob=0.0)
FIXTURES = {
    "deit": (tf.DeiTForImageClassification, dict(SIZES, intermediate_size=38, hidden_act="gelu_new")),
    # Two heads, whose mean are the scores; projections without bias, oblong images.
    "deit-teacher": (tf.DeiTForImageClassificationWithTeacher,
                     dict(SIZES, intermediate_size=38, qkv_bias=False, image_size=[8, 12], patch_size=[4, 6])),
    "dinov2": (tf.Dinov2ForImageClassification, dict(SIZES, mlp_ratio=2)),
    # The MLP of the largest model, without the token of pre-training.
    "dinov2-gated": (tf.Dinov2ForImageClassification,
                     dict(SIZES, mlp_ratio=2, use_swiglu_ffn=True, use_mask_token=False, layerscale_value=0.5)),
}


def as_saved(results):
    """Gradients under the names of the files: transformers 5 computes with other ones."""
    names = {"deit.layers.": "deit.encoder.layer.", "attention.q_proj": "attention.attention.query",
             "attention.k_proj": "attention.attention.key", "attention.v_proj": "attention.attention.value",
             "attention.o_proj": "attention.output.dense", "mlp.down_proj": "mlp.weights_out"}
    out = {}
    for name, t in results.items():
        if ".up_proj." in name:
            continue
        if ".gate_proj." in name:
            t = torch.cat([t, results[name.replace("gate_proj", "up_proj")]])
            name = name.replace("gate_proj", "weights_in")
        if name.startswith("grad.deit."):
            name = name.replace("mlp.fc1", "intermediate.dense").replace("mlp.fc2", "output.dense")
        for new, old in names.items():
            name = name.replace(new, old) if name.startswith("grad.") else name
        out[name] = t.detach().clone().contiguous()
    return out


def compute(model, inputs):
    model.zero_grad()
    out = model(pixel_values=inputs["pixel_values"].to(model.dtype), output_hidden_states=True)
    loss = torch.nn.functional.cross_entropy(out.logits, inputs["labels"])
    loss.backward()
    results = {f"hidden.{i}": h for i, h in enumerate(out.hidden_states)} | {"logits": out.logits, "loss": loss}
    used = {n: p for n, p in model.named_parameters() if "mask_token" not in n}
    return as_saved(results | {f"grad.{n}": p.grad for n, p in used.items()})


def make(name, kind, settings):
    generator = torch.Generator().manual_seed(sum(map(ord, name)))
    config = kind.config_class(**settings)
    config._attn_implementation = "eager"
    model = kind(config).eval()
    randomize(model, generator)
    folder = FOLDER / name
    model.save_pretrained(folder)
    height, width = config.image_size if isinstance(config.image_size, list) else [config.image_size] * 2
    inputs = {"pixel_values": torch.randn((3, 3, height, width), generator=generator),
              "labels": torch.randint(0, config.num_labels, (3,), generator=generator)}
    single, double = compute(model, inputs), compute(model.double(), inputs)
    differences = {n: {"max_abs_diff": (single[n].double() - double[n]).abs().max().item(),
                       "max_abs": double[n].abs().max().item()} for n in single}
    save_file(inputs | single, folder / "expected.safetensors")
    write = lambda file, value: (folder / file).write_text(json.dumps(value, indent=2) + "\n")
    write("tolerances.json", {"float32_vs_float64": differences})
    write("fixture.json", {"name": name, "family": config.model_type, "task": "image-classification",
                           "tokenizer": None, "attention": "eager"})


for fixture in sys.argv[1:] or FIXTURES:
    make(fixture, *FIXTURES[fixture])
