#!/usr/bin/env python3
"""Digits of 8 x 8 pixels (IDX files): compares redco with PyTorch for the same initial weights, batches and steps.

    PEER_PYTHON bench/accuracy/digits.py losses --data digits --work /tmp/digits [--models cnn vit mlp-mixer]
    PEER_PYTHON bench/accuracy/digits.py full   --data digits --work /tmp/digits [--threads 2] [--epochs 60]

PEER_PYTHON has torch, transformers and safetensors; --data is a folder with train- and test-images-idx3-ubyte.gz and
-labels-idx1-ubyte.gz. redco writes the initial weights. The peers are transformers' ViTForImageClassification and the same CNN and
MLP-Mixer in torch, with batches in redco's order, torch.optim.AdamW, the same schedule and clipping.

losses   200 steps: the largest relative difference of the losses; it must be below 1 %.
full     complete trainings: accuracy on the test images (CNN at least 98 %, ViT and MLP-Mixer 95 %), and their times.
"""
import argparse
import gzip
import json
import math
import os
import subprocess
import time

import numpy as np
import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from transformers import ViTForImageClassification, get_linear_schedule_with_warmup

from redco_order import epoch_order

HERE = os.path.dirname(os.path.abspath(__file__))
MODELS = {
    "cnn": ["model.arch=cnn", "model.conv_channels=[32,64]", "model.hidden_sizes=[128]"],
    "vit": ["model.arch=vit", "model.patch_size=2", "model.hidden_size=64", "model.num_hidden_layers=3", "model.num_attention_heads=4",
            "model.intermediate_size=128"],
    "mlp-mixer": ["model.arch=mlp-mixer", "model.patch_size=2", "model.hidden_size=64", "model.num_hidden_layers=3",
                  "model.tokens_mlp_dim=32", "model.channels_mlp_dim=128"],
}
WANTED = {"cnn": 0.98, "vit": 0.95, "mlp-mixer": 0.95}
parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("what", choices=["losses", "full"])
parser.add_argument("--data", required=True)
parser.add_argument("--work", required=True, help="folder for checkpoints and logs")
parser.add_argument("--redco", default=os.path.join(HERE, "..", "..", "build", "bin", "redco"))
parser.add_argument("--models", nargs="+", choices=list(MODELS), default=list(MODELS))
parser.add_argument("--threads", type=int, default=1)
parser.add_argument("--steps", type=int, default=200, help="of losses")
parser.add_argument("--epochs", type=int, default=60, help="of full")
parser.add_argument("--seed", type=int, default=42)
args = parser.parse_args()
torch.set_num_threads(args.threads)
os.makedirs(args.work, exist_ok=True)
BATCH, LEARNING_RATE = 32, 1e-3


def files(part):
    return [os.path.join(args.data, f"{part}-{what}-ubyte.gz") for what in ("images-idx3", "labels-idx1")]


def read(part):
    images, labels = (gzip.open(f).read() for f in files(part))
    pixels = np.frombuffer(images, np.uint8, offset=16).reshape(-1, 1, 8, 8).astype(np.float32)
    return torch.tensor(pixels / 127.5 - 1), torch.tensor(np.frombuffer(labels, np.uint8, offset=8).astype(np.int64))


def train(name, model, *more):
    """-> a job's workdir and time."""
    folder = os.path.join(args.work, f"{name}-{model}")
    begin = time.time()
    subprocess.run([args.redco, "train", os.path.join(HERE, "digits.yaml"), f"workdir={folder}", "checkpoint.resume=never", *MODELS[model],
                    f"data.train=[{','.join(files('train'))}]", f"train.seed={args.seed}", f"parallel.threads_per_rank={args.threads}", *more],
                   check=True, env=dict(os.environ, OMP_NUM_THREADS=str(args.threads)))
    return folder, time.time() - begin


def values(folder, key):
    with open(os.path.join(folder, "metrics.jsonl")) as lines:
        return [m[key] for m in map(json.loads, lines) if key in m]


class Weights(torch.nn.Module):
    """The tensors of a folder, by name."""

    def __init__(self, folder):
        super().__init__()
        self.tensors = torch.nn.ParameterDict(
            {k.replace(".", "/"): torch.nn.Parameter(v) for k, v in load_file(os.path.join(folder, "model.safetensors")).items()})

    def pair(self, name):
        return self.tensors[f"{name}.weight".replace(".", "/")], self.tensors[f"{name}.bias".replace(".", "/")]

    def linear(self, name, x):
        return F.linear(x, *self.pair(name))


class Cnn(Weights):
    def forward(self, x):
        for name in ("conv1", "conv2"):
            x = F.avg_pool2d(F.relu(F.conv2d(x, *self.pair(name), padding=1)), 2)
        return self.linear("fc2", F.relu(self.linear("fc1", x.flatten(1))))


class Mixer(Weights):
    def norm(self, name, x):
        return F.layer_norm(x, x.shape[-1:], *self.pair(name), eps=1e-6)

    def mlp(self, name, x):
        return self.linear(f"{name}.fc2", F.gelu(self.linear(f"{name}.fc1", x)))

    def forward(self, x):
        weight, bias = self.pair("stem.proj")
        x = F.conv2d(x, weight, bias, stride=weight.shape[-1]).flatten(2).transpose(1, 2)
        for h in ("blocks.0", "blocks.1", "blocks.2"):
            x = x + self.mlp(f"{h}.mlp_tokens", self.norm(f"{h}.norm1", x).transpose(1, 2)).transpose(1, 2)
            x = x + self.mlp(f"{h}.mlp_channels", self.norm(f"{h}.norm2", x))
        return self.linear("head", self.norm("norm", x).mean(1))


class Vit(torch.nn.Module):
    def __init__(self, folder):
        super().__init__()
        self.model = ViTForImageClassification.from_pretrained(folder)

    def forward(self, x):
        return self.model(x).logits


def peer(model, folder, steps):
    net = {"cnn": Cnn, "vit": Vit, "mlp-mixer": Mixer}[model](folder).train()
    optimizer = torch.optim.AdamW(net.parameters(), lr=LEARNING_RATE, weight_decay=0.01)
    scheduler = get_linear_schedule_with_warmup(optimizer, math.ceil(0.1 * steps), steps)
    pixels, labels = read("train")
    per_epoch, losses = math.ceil(len(labels) / BATCH), []
    for step in range(steps):
        if step % per_epoch == 0:
            order = epoch_order(len(labels), args.seed, step // per_epoch)
        at = step % per_epoch * BATCH
        rows = order[at:at + BATCH]
        loss = F.cross_entropy(net(pixels[rows]), labels[rows])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        losses.append(loss.item())
    pixels, labels = read("test")
    with torch.no_grad():
        return losses, (net.eval()(pixels).argmax(-1) == labels).float().mean().item()


for model in args.models:
    # A step with learning rate 0 keeps the initial weights.
    initial, _ = train("initial", model, "train.max_steps=1", "train.n_epochs=~", "train.learning_rate=0")
    initial = os.path.join(initial, "checkpoints", "step-00000001")
    if args.what == "losses":
        folder, took = train("losses", model, f"train.max_steps={args.steps}", "train.n_epochs=~")
        ours, begin = values(folder, "loss"), time.time()
        theirs, _ = peer(model, initial, args.steps)
        worst = max(abs(a - b) / b for a, b in zip(ours, theirs))
        print(json.dumps({"experiment": f"digits {model} losses", "steps": len(ours), "largest_relative_difference": worst,
                          "first": [ours[0], theirs[0]], "last": [ours[-1], theirs[-1]], "redco_s": took, "torch_s": time.time() - begin,
                          "threads": args.threads}), flush=True)
        assert len(ours) == len(theirs) == args.steps and worst < 0.01
    else:
        folder, took = train("full", model, f"train.n_epochs={args.epochs}", f"data.eval=[{','.join(files('test'))}]")
        ours, begin = values(folder, "eval_accuracy")[-1], time.time()
        _, theirs = peer(model, initial, args.epochs * math.ceil(len(read("train")[1]) / BATCH))
        print(json.dumps({"experiment": f"digits {model}", "epochs": args.epochs, "accuracy": {"redco": ours, "torch": theirs},
                          "wanted": WANTED[model], "redco_s": took, "torch_s": time.time() - begin, "threads": args.threads}), flush=True)
        assert ours >= WANTED[model]
