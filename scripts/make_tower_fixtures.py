#!/usr/bin/env python3
"""Makes tests/fixtures/{clip-old-end,siglip}: models with two towers, with the results of PyTorch.

Needs torch and transformers 5; tests don't: the files are committed. Usage: scripts/make_tower_fixtures.py [NAME...]
"""
import json
import pathlib
import sys

import torch
import transformers as tf
from safetensors.torch import save_file

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "tests" / "fixtures"
VOCAB, END = 61, 60
CLIP_TEXT = dict(vocab_size=VOCAB, hidden_size=24, intermediate_size=38, num_hidden_layers=1, num_attention_heads=3,
                 max_position_embeddings=12, bos_token_id=59, pad_token_id=1)
IMAGE = dict(hidden_size=20, intermediate_size=34, num_hidden_layers=2, num_attention_heads=5, image_size=12, patch_size=4)

FIXTURES = {
    # The end token of old configs is 2, and found as the highest id; another activation, one channel.
    "clip-old-end": ("clip", dict(projection_dim=14, logit_scale_init_value=1.5,
                                  text_config=dict(CLIP_TEXT, eos_token_id=2, hidden_act="gelu"),
                                  vision_config=dict(IMAGE, num_channels=1, hidden_act="gelu"))),
    # Texts without a causal mask, read at their last position; images by a probe.
    "siglip": ("siglip", dict(text_config=dict(vocab_size=VOCAB, hidden_size=24, intermediate_size=38, num_hidden_layers=1,
                                               num_attention_heads=3, max_position_embeddings=9, projection_size=20),
                              vision_config=IMAGE)),
}


def compute(model, inputs):
    model.zero_grad()
    images = model.vision_model(pixel_values=inputs["pixel_values"], output_hidden_states=True)
    texts = model.text_model(input_ids=inputs["input_ids"], attention_mask=inputs["attention_mask"],
                             output_hidden_states=True)
    out = model(**inputs, return_loss=True)
    out.loss.backward()
    results = {f"{tower}_hidden.{i}": h for tower, o in (("image", images), ("text", texts))
               for i, h in enumerate(o.hidden_states)}
    results |= {"image_last": images.last_hidden_state, "text_last": texts.last_hidden_state,
                "image_pooled": images.pooler_output, "text_pooled": texts.pooler_output,
                "image_embeds": out.image_embeds, "text_embeds": out.text_embeds,
                "logits": out.logits_per_image, "loss": out.loss}
    results |= {f"grad.{n}": p.grad for n, p in model.named_parameters()}
    return {n: t.detach().clone().contiguous() for n, t in results.items()}


def three_steps(model, inputs):
    model.zero_grad()
    adamw = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.01)
    losses = {}
    for step in range(3):
        adamw.zero_grad()
        loss = model(**inputs, return_loss=True).loss
        losses[f"loss_step{step + 1}"] = loss.detach().clone()
        loss.backward()
        adamw.step()
    losses["loss_after3"] = model(**inputs, return_loss=True).loss.detach().clone()
    return losses


def make(name, family, settings):
    g = torch.Generator().manual_seed(sum(map(ord, name)))
    config = tf.AutoConfig.for_model(family, **settings)
    model = tf.AutoModel.from_config(config, attn_implementation="eager", dtype=torch.float32).eval()
    with torch.no_grad():
        for n, p in sorted(model.named_parameters()):
            x = torch.randn(p.shape, generator=g)
            if n.startswith("logit"):
                p.copy_(x * 0.1 + (1.2 if n == "logit_scale" else -2.0))
            elif p.dim() > 1:
                p.copy_(x * (0.6 if "embedding" in n else 1.3 / p.shape[-1] ** 0.5))
            else:
                p.copy_(x * 0.2 + (0.0 if "bias" in n else 1.0))
    folder = FOLDER / name
    model.save_pretrained(folder)
    text, image = config.text_config, config.vision_config
    ids = torch.randint(3, END - 3, (3, 9), generator=g)
    mask = torch.ones_like(ids)
    if family == "clip":
        for row, end in enumerate((8, 5, 3)):
            ids[row, end] = END
            ids[row, end + 1:] = text.pad_token_id
            mask[row, end + 1:] = 0
    else:
        ids[1, 6:] = text.pad_token_id  # read like any token
    pixels = torch.randn(3, image.num_channels, image.image_size, image.image_size, generator=g)
    inputs = {"input_ids": ids, "attention_mask": mask, "pixel_values": pixels}
    single = compute(model, inputs)
    state = {n: t.clone() for n, t in model.state_dict().items()}
    steps = three_steps(model, inputs)
    adamw = {f"adamw.{n}": p.detach().clone() for n, p in model.named_parameters()}
    model.load_state_dict(state)
    double_inputs = dict(inputs, pixel_values=pixels.double())
    double = compute(model.double(), double_inputs)
    double |= three_steps(model, double_inputs)
    single |= steps
    differences = {n: {"max_abs_diff": (single[n].double() - double[n]).abs().max().item(),
                       "max_abs": double[n].abs().max().item()} for n in single}
    save_file(inputs | single | adamw, folder / "expected.safetensors")
    write = lambda file, value: (folder / file).write_text(json.dumps(value, indent=2) + "\n")
    write("tolerances.json", {"float32_vs_float64": differences})
    write("fixture.json", {"name": name, "family": family, "task": "image-text-contrastive", "tokenizer": None,
                           "attention": "eager",
                           "optimizer": {"name": "AdamW", "lr": 0.001, "betas": [0.9, 0.999], "eps": 1e-08,
                                         "weight_decay": 0.01, "steps": 3, "clip": None}})
    print(name, sum(f.stat().st_size for f in folder.iterdir()) // 1024, "KiB, loss", single["loss"].item())


for name in sys.argv[1:] or FIXTURES:
    make(name, *FIXTURES[name])
