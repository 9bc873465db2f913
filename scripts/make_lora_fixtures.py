#!/usr/bin/env python3
"""Makes the adapters tests/fixtures/lora-* with the results of PEFT: logits, loss, gradients, AdamW.

Their bases are other fixtures. Needs torch, transformers 5 and peft. The files are committed, so the tests do not need them.
Usage: scripts/make_lora_fixtures.py [NAME...]
"""
import copy
import json
import pathlib
import sys

import peft
import torch
import transformers as tf
from safetensors.torch import load_file, save_file

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "tests" / "fixtures"
ADAMW = dict(lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01)
STEPS = 3

FIXTURES = {
    # Fused and transposed projections.
    "lora-gpt2": ("gpt2", dict(r=3, lora_alpha=7, target_modules=["c_attn", "c_proj", "c_fc"])),
    # Grouped heads; other scaling, rank and alpha; a norm trained in full; layers selected by an expression.
    "lora-llama": ("llama", dict(r=4, lora_alpha=6, use_rslora=True, modules_to_save=["norm"],
                                 rank_pattern={"down_proj": 2}, alpha_pattern={"layers.1.self_attn.v_proj": 3},
                                 target_modules=r".*\.(self_attn\.[qkvo]_proj|mlp\.(down|up)_proj)")),
    # Parallel attention and MLP: one sum of both with their adapters.
    "lora-gptj": ("gptj", dict(r=2, lora_alpha=2, target_modules="all-linear")),
}


def own_name(name):
    """The name in PEFT's files, without base_model.model."""
    return (name.removeprefix("base_model.model.").replace(".default.weight", ".weight")
            .replace(".modules_to_save.default.", ".").replace(".modules_to_save.", "."))


def compute(model, inputs, optimizer_steps):
    out = model(**inputs, use_cache=False)
    out.loss.backward()
    results = {"logits": out.logits, "loss": out.loss}
    trained = {own_name(n): p for n, p in model.named_parameters() if p.requires_grad}
    results |= {f"grad.{n}": p.grad for n, p in trained.items()}
    results = {n: t.detach().clone().contiguous() for n, t in results.items()}
    if not optimizer_steps:
        return results
    adamw = torch.optim.AdamW(trained.values(), **ADAMW)
    for step in range(STEPS):
        model.zero_grad()
        loss = model(**inputs, use_cache=False).loss
        loss.backward()
        adamw.step()
        results[f"loss_step{step + 1}"] = loss.detach().clone()
    with torch.no_grad():
        results[f"loss_after{STEPS}"] = model(**inputs, use_cache=False).loss.clone()
    results |= {f"adamw.{n}": p.detach().clone().contiguous() for n, p in trained.items()}
    return results


def make(name, base, settings):
    torch.manual_seed(sum(map(ord, name)))
    model = tf.AutoModelForCausalLM.from_pretrained(FOLDER / base, attn_implementation="eager", dtype=torch.float32)
    model = peft.get_peft_model(model, peft.LoraConfig(task_type="CAUSAL_LM", lora_dropout=0.0, **settings)).eval()
    with torch.no_grad():
        for n, p in sorted(model.named_parameters()):
            if "lora_" in n:
                p.copy_(torch.randn(p.shape) * 0.4 / p.shape[-1] ** 0.5)
            elif p.requires_grad:
                p.copy_(1 + 0.2 * torch.randn(p.shape))
    folder = FOLDER / name
    model.save_pretrained(folder)
    (folder / "README.md").unlink(missing_ok=True)
    config = json.loads((folder / "adapter_config.json").read_text())
    config["base_model_name_or_path"] = f"../{base}"
    (folder / "adapter_config.json").write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")

    given = load_file(FOLDER / base / "expected.safetensors")
    inputs = {k: given[k][:3, :14].long().contiguous() for k in ("input_ids", "attention_mask", "labels")}
    double = copy.deepcopy(model).double()
    single = compute(model, inputs, True)
    exact = compute(double, inputs, True)
    tolerances, buckets = {}, {"g>=1e-3": 0.0, "1e-5<=g<1e-3": 0.0}
    for n, t in single.items():
        difference = (t.double() - exact[n]).abs()
        tolerances[n] = {"max_abs_diff": difference.max().item(), "max_abs": exact[n].abs().max().item()}
        if n.startswith("adamw."):
            g = exact["grad." + n.removeprefix("adamw.")].abs()
            for bucket, of in (("g>=1e-3", g >= 1e-3), ("1e-5<=g<1e-3", (g >= 1e-5) & (g < 1e-3))):
                if of.any():
                    buckets[bucket] = max(buckets[bucket], difference[of].max().item())
    save_file({k: v.int() for k, v in inputs.items()} | single, folder / "expected.safetensors")
    (folder / "tolerances.json").write_text(json.dumps(
        {"float32_vs_float64": tolerances,
         "adamw_by_first_gradient": {k: {"max_abs_diff": v} for k, v in buckets.items()}}, indent=1) + "\n")
    (folder / "fixture.json").write_text(json.dumps(
        {"name": name, "task": "causal-lm",
         "optimizer": {"name": "AdamW", **ADAMW, "steps": STEPS, "clip": None}}, indent=1) + "\n")
    print(name, {k: round(v["max_abs"], 4) for k, v in tolerances.items() if k.startswith("l")})


if __name__ == "__main__":
    for name, (base, settings) in FIXTURES.items():
        if not sys.argv[1:] or name in sys.argv[1:]:
            make(name, base, settings)
