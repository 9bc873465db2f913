#!/usr/bin/env python3
"""Makes tests/fixtures/{clip-argmax,clip-text,clip-vision,siglip,siglip-text}, tiny models that embed images and texts, with
the results of PyTorch.

Needs torch and transformers 5. Usage: scripts/make_pair_fixtures.py [NAME...]
"""
import json
import sys

import torch
import transformers as tf
from make_model_fixtures import FOLDER, randomize
from safetensors.torch import save_file

# Heads that two shards cannot divide evenly.
TEXT = dict(vocab_size=48, hidden_size=20, intermediate_size=26, num_hidden_layers=2, num_attention_heads=5,
            max_position_embeddings=10, projection_dim=12, bos_token_id=45, eos_token_id=46, pad_token_id=0)
VISION = dict(hidden_size=24, intermediate_size=30, num_hidden_layers=2, num_attention_heads=3, image_size=12,
              patch_size=4, projection_dim=12)
FIXTURES = {
    # Early configs have eos_token_id 2: the token with the largest id is pooled.
    "clip-argmax": (tf.CLIPModel, tf.CLIPConfig(
        text_config=dict(TEXT, eos_token_id=2, hidden_act="gelu"), vision_config=dict(VISION, hidden_act="gelu"),
        projection_dim=12, logit_scale_init_value=1.5)),
    "clip-text": (tf.CLIPTextModelWithProjection, tf.CLIPTextConfig(**TEXT)),
    "clip-vision": (tf.CLIPVisionModelWithProjection, tf.CLIPVisionConfig(**VISION)),
    # Texts fill all positions, and patches not the whole image.
    "siglip": (tf.SiglipModel, tf.SiglipConfig(
        text_config=dict(TEXT, projection_size=24), vision_config=dict(VISION, image_size=14))),
    "siglip-text": (tf.SiglipTextModel, tf.SiglipTextConfig(**TEXT)),
}


def unit(x):
    return x / x.norm(dim=-1, keepdim=True)


def compute(model, inputs):
    model.zero_grad()
    keep = {}
    hooks = []
    for kind in ("text", "vision"):
        tower = getattr(model, f"{kind}_model", model if f"{kind}_model" in model.config.model_type else None)
        if tower is None:
            continue
        name = "image" if kind == "vision" else "text"
        for i, layer in enumerate(tower.encoder.layers):
            if i == 0:
                hooks.append(layer.register_forward_pre_hook(
                    lambda m, args, kw, n=name: keep.__setitem__(f"{n}_hidden.0", args[0] if args else kw["hidden_states"]),
                    with_kwargs=True))
            hooks.append(layer.register_forward_hook(
                lambda m, a, out, n=name, i=i: keep.__setitem__(f"{n}_hidden.{i + 1}", out[0] if isinstance(out, tuple) else out)))
    out = model(**inputs, **({"return_loss": True} if hasattr(model, "logit_scale") else {}))
    results = dict(keep)
    if hasattr(model, "logit_scale"):
        results |= {"logits": out.logits_per_image, "loss": out.loss, "image_embeds": out.image_embeds,
                    "text_embeds": out.text_embeds}
        out.loss.backward()
        results |= {f"grad.{n}": torch.zeros_like(p) if p.grad is None else p.grad for n, p in model.named_parameters()}
    else:
        name = "image" if "pixel_values" in inputs else "text"
        y = out.get(f"{name}_embeds", out.get("pooler_output"))
        results |= {f"{name}_embeds": unit(y), "logits": unit(y)}
    for h in hooks:
        h.remove()
    return {n: t.detach().clone().contiguous() for n, t in results.items()}


def make(name, kind, config):
    generator = torch.Generator().manual_seed(sum(map(ord, name)))
    config._attn_implementation = "eager"
    model = kind(config).eval()
    randomize(model, generator)
    inputs = {}
    if "vision" not in name:
        length = TEXT["max_position_embeddings"] - (0 if "siglip" in name else 1)
        ids = torch.randint(3, 44, (3, length), generator=generator)
        ids[:, 0] = 45
        lengths = [length, length - 2, length - 5]
        mask = torch.zeros_like(ids)
        for r, n in enumerate(lengths):
            ids[r, n - 1], ids[r, n:], mask[r, :n] = 46, 0, 1
        inputs["input_ids"] = ids
        if "siglip" not in name:
            inputs["attention_mask"] = mask
    if "text" not in name:
        size = getattr(config, "vision_config", config).image_size
        inputs["pixel_values"] = torch.randn(3, 3, size, size, generator=generator)
    results = compute(model, inputs)
    wide = compute(model.double(), {k: v.double() if v.is_floating_point() else v for k, v in inputs.items()})
    model.float()
    folder = FOLDER / name
    model.save_pretrained(folder)
    save_file({k: v.contiguous() for k, v in inputs.items()} | results, folder / "expected.safetensors")
    differences = {n: {"max_abs_diff": float((t.double() - wide[n]).abs().max()), "max_abs": float(wide[n].abs().max())}
                   for n, t in results.items()}
    (folder / "tolerances.json").write_text(json.dumps({"float32_vs_float64": differences}, indent=1) + "\n")
    (folder / "fixture.json").write_text(json.dumps({"task": "image-text-contrastive"}, indent=1) + "\n")
    (folder / "generation_config.json").unlink(missing_ok=True)


for name, (kind, config) in FIXTURES.items():
    if len(sys.argv) == 1 or name in sys.argv[1:]:
        make(name, kind, config)
