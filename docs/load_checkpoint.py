#!/usr/bin/env python3
"""Loads a redco checkpoint into PyTorch, with its optimizer state.

    python docs/load_checkpoint.py runs/x/checkpoints/last

Needs torch, transformers and safetensors, and nothing of redco. The folder is a Hugging Face folder, and training/ has the
moments of AdamW under the names of the parameters.
"""
import glob
import json
import os
import sys

import torch
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM


def load_moments(folder):
    """{name: (exp_avg, exp_avg_sq)}, names and shapes as in model.safetensors."""
    tensors = {}
    for path in sorted(glob.glob(os.path.join(folder, "training", "optimizer*.safetensors"))):
        tensors.update(load_file(path))
    names = [n[len("exp_avg/"):] for n in tensors if n.startswith("exp_avg/")]
    return {n: (tensors["exp_avg/" + n], tensors["exp_avg_sq/" + n]) for n in names}


def load(folder):
    """(model, AdamW with its state, training/state.json). Set the hyperparameters as in config.resolved.yaml."""
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    with open(os.path.join(folder, "training", "state.json")) as f:
        state = json.load(f)
    optimizer = torch.optim.AdamW(model.parameters())
    moments = load_moments(folder)
    for name, parameter in model.named_parameters():  # a tied parameter occurs once, under its stored name
        exp_avg, exp_avg_sq = moments.pop(name)
        assert exp_avg.shape == parameter.shape, name
        optimizer.state[parameter] = {
            "step": torch.tensor(float(state["optimizer_steps"])),
            "exp_avg": exp_avg,
            "exp_avg_sq": exp_avg_sq,
        }
    assert not moments, f"moments without a parameter: {sorted(moments)}"
    return model, optimizer, state


if __name__ == "__main__":
    model, optimizer, state = load(sys.argv[1])
    count = sum(p.numel() for p in model.parameters())
    print(f"{type(model).__name__}, {count} parameters, after {state['step']} steps; {len(optimizer.state)} have moments")
