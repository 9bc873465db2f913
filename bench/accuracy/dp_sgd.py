#!/usr/bin/env python3
"""DP-SGD: compares docs/examples/dp_sgd with PyTorch for the same initial weights, lots and noise.

    PEER_PYTHON bench/accuracy/dp_sgd.py --pipeline dp_sgd.so --work /tmp/dp_sgd [--steps 40]

PEER_PYTHON has torch and safetensors. Writes IDX files of noisy patterns, and redco writes the initial weights (one step with the
learning rate 1e-30). The peer computes the gradient of each example separately, clips it, and adds the noise; then torch.optim.SGD
with momentum makes the step. The lots and the noise are redco's random numbers. redco runs on several meshes. The largest relative
difference of the losses must be below 1e-4, and that of the weights after the last step below 1e-3 of the largest weight.
"""
import argparse
import sys

import torch
import torch.nn.functional as F

import image_peers
from redco_random import key, normal, uniform

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
image_peers.add_arguments(parser, "dp_sgd")
parser.add_argument("--steps", type=int, default=40)
args = parser.parse_args()
torch.set_num_threads(1)
IMAGES, LOT, ROWS, CLIP, NOISE, RATE, MOMENTUM, SEED = 1003, 40, 80, 0.7, 0.8, 0.1, 0.9, 42

pixels, labels, data = image_peers.write_images(args.work, IMAGES)
JOB = data + ["settings.epsilon=~", f"settings.noise_multiplier={NOISE}", f"settings.lot_size={LOT}", f"settings.clip={CLIP}",
              f"train.global_batch_size={ROWS}", f"train.learning_rate={RATE}", f"train.momentum={MOMENTUM}",
              "train.schedule=constant", "train.n_epochs=~", f"train.seed={SEED}", f"train.max_steps={args.steps}"]
start = image_peers.weights(image_peers.train(args, "start", JOB + ["train.max_steps=1", "train.learning_rate=1e-30"])[0])
runs = {name: image_peers.train(args, name, JOB + words) for name, words in {
    "1x1": [], "micro-batches": ["train.per_device_batch_size=24"], "2x1": ["parallel.n_ranks=2"],
    "1x2": ["parallel.n_ranks=2", "parallel.n_model_shards=2"]}.items()}

own = {name: torch.nn.Parameter(w.clone()) for name, w in start.items()}
optimizer = torch.optim.SGD(own.values(), lr=RATE, momentum=MOMENTUM)
losses, lots = [], (IMAGES + LOT - 1) // LOT
for step in range(args.steps):
    first = step // lots * lots  # the epoch's first step
    u = uniform(key(SEED, first, f"lot {step - first}"), (IMAGES,))
    total, sums = 0.0, {name: torch.zeros_like(w) for name, w in own.items()}
    for i in [i for i in range(IMAGES) if float(u[i]) < LOT / IMAGES]:
        x = pixels[i:i + 1]
        for layer in ("net.fc1", "net.fc2", "net.fc3"):
            x = F.linear(x, own[layer + ".weight"], own[layer + ".bias"])
            x = torch.tanh(x) if layer != "net.fc3" else x
        loss = F.cross_entropy(x, torch.tensor([labels[i]]))
        total += loss.item()
        gradients = torch.autograd.grad(loss, list(own.values()))
        norm = torch.sqrt(sum((g * g).sum() for g in gradients) + 1e-12)
        for name, g in zip(own, gradients):
            sums[name] += g * min(1.0, CLIP / norm.item())
    for name, w in own.items():
        noise = torch.from_numpy(normal(key(SEED, step, "noise of " + name), tuple(w.shape)))
        w.grad = (sums[name] + noise * (NOISE * CLIP)) / LOT
    optimizer.step()
    losses.append(total / LOT)
sys.exit(image_peers.compare(runs, losses, {name: w.detach() for name, w in own.items()}))
