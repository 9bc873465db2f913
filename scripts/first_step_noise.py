#!/usr/bin/env python3
"""Lists the elements of tests/fixtures/vit-gpt2 for which a rounding error decides AdamW's first step.

It computes the fixture's gradients in float64. For each gradient below the float32 error of its tensor, it prints how
far the other sign moves loss_step2 (2 lr times the gradient of the second step). Then it moves all weights by at most
half a float32 ulp and counts how often the first of those gradients changes its sign.
docs/verify.md has the numbers. Needs torch and transformers 5. Usage: scripts/first_step_noise.py
"""
import copy
import json
import pathlib

import torch
import transformers as tf
from safetensors.torch import load_file

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "tests" / "fixtures" / "vit-gpt2"
LEARNING_RATE = 1e-3

softmax = torch.nn.functional.softmax
# transformers' ViT always computes its softmax in float32.
torch.nn.functional.softmax = lambda x, dim=None, dtype=None, **_: softmax(x, dim=dim, dtype=x.dtype)

expected = load_file(FOLDER / "expected.safetensors")
tolerances = json.loads((FOLDER / "tolerances.json").read_text())["float32_vs_float64"]
model = tf.VisionEncoderDecoderModel.from_pretrained(FOLDER, attn_implementation="eager", dtype=torch.float32).eval()
stored = load_file(FOLDER / "model.safetensors")


def stored_name(parameter):
    """The name in the file. It differs from the module's name."""
    return next(n for n, t in stored.items() if t.shape == parameter.shape and torch.equal(t, parameter))


names = {n: stored_name(p) for n, p in model.named_parameters()}


def two_steps(model, dtype):
    """The losses of two AdamW steps and the gradients in both."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE, weight_decay=0.01)
    losses, gradients = [], []
    for _ in range(2):
        optimizer.zero_grad()
        logits = model(pixel_values=expected["pixel_values"].to(dtype),
                       decoder_input_ids=expected["decoder_input_ids"]).logits
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), expected["labels"].flatten())
        loss.backward()
        losses.append(loss.item())
        gradients.append({n: p.grad.detach().double().flatten() for n, p in model.named_parameters()
                          if p.grad is not None})
        optimizer.step()
    return losses, gradients


losses, (first, second) = two_steps(copy.deepcopy(model).double(), torch.float64)
print(f"loss_step2: {losses[1]:.9f} in float64, {expected['loss_step2'].item():.9f} in the file")
found = []
for n, g in first.items():
    file = expected["grad." + names[n]].double().flatten()
    error = tolerances["grad." + names[n]]["max_abs_diff"]
    for i in ((g != 0) & (g.abs() <= error)).nonzero().flatten().tolist():
        found.append((2 * LEARNING_RATE * second[n][i].abs().item(), n, i, g[i].item(), file[i].item()))
found.sort(reverse=True)
print(f"{len(found)} gradients other than 0 are smaller than the tensor's error in float32; these move loss_step2 most:")
for effect, n, i, g, file in found[:5]:
    print(f"  by {effect:.1e}: {names[n]}[{i}]: {g:.2e} in float64, {file:.2e} in the file")

_, n, i, _, _ = found[0]
values, moves = [], []
for seed in range(20):
    torch.manual_seed(seed)
    moved = copy.deepcopy(model).double()
    with torch.no_grad():
        for p in moved.parameters():
            p.mul_(1 + (2 * torch.rand_like(p) - 1) * 2**-24)
    l, (g, _) = two_steps(moved, torch.float64)
    values.append(g[n][i].item())
    moves.append(l[1] - losses[1])
print(f"with weights moved by half a unit in the last place: {min(values):.1e} to {max(values):.1e}, "
      f"negative in {sum(v < 0 for v in values)} of {len(values)}; loss_step2 moves by {min(moves):.1e} to "
      f"{max(moves):.1e}")
