#!/usr/bin/env python3
"""Captions of drawn images: compares redco with PyTorch for the same initial weights, batches and steps.

    PEER_PYTHON bench/accuracy/captioning.py --work /tmp/captioning [--redco build/bin/redco] [--steps 200]

PEER_PYTHON has torch, transformers and Pillow. Draws images of two shapes as PNG files with captions; redco writes the initial weights
and trains a ViT with a GPT-2. The peer is transformers' VisionEncoderDecoderModel on that folder, with batches in redco's order,
torch.optim.AdamW, and the same schedule, clipping and label smoothing. Prints the largest relative difference of the losses. It
must be below 1 %.
"""
import argparse
import json
import math
import os
import random
import subprocess
import time

import numpy as np
import torch
from PIL import Image, ImageDraw
from transformers import VisionEncoderDecoderModel, get_linear_schedule_with_warmup
from transformers.trainer_pt_utils import LabelSmoother

from redco_order import epoch_order

HERE = os.path.dirname(os.path.abspath(__file__))
parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--work", required=True, help="folder for images, checkpoints and logs")
parser.add_argument("--redco", default=os.path.join(HERE, "..", "..", "build", "bin", "redco"))
parser.add_argument("--threads", type=int, default=1)
parser.add_argument("--steps", type=int, default=200)
parser.add_argument("--images", type=int, default=1600)
parser.add_argument("--seed", type=int, default=42)
args = parser.parse_args()
torch.set_num_threads(args.threads)
os.makedirs(args.work, exist_ok=True)
BATCH, LEARNING_RATE, SMOOTHING, END = 32, 1e-3, 0.1, 256


def draw(rng):
    """An image of two shapes, and its caption."""
    image = Image.new("RGB", (32, 32), (245, 245, 245))
    pen = ImageDraw.Draw(image)
    colours = {"red": (210, 40, 40), "green": (40, 160, 60), "blue": (50, 70, 210)}
    words = []
    for left in (0, 16):
        size, colour, kind = rng.choice(["small", "large"]), rng.choice(list(colours)), rng.choice(["circle", "square"])
        r = 3 if size == "small" else 6
        x, y = left + 8 + rng.randint(-1, 1), rng.randint(8, 23)
        (pen.ellipse if kind == "circle" else pen.rectangle)([x - r, y - r, x + r, y + r], fill=colours[colour])
        words.append(f"a {size} {colour} {kind}")
    return image, " left of ".join(words)


images, captions = [], []
rng = random.Random(args.seed)
for i in range(args.images):
    image, caption = draw(rng)
    image.save(os.path.join(args.work, f"{i}.png"))
    images.append(np.asarray(image))
    captions.append(caption)
with open(os.path.join(args.work, "train.jsonl"), "w") as lines:
    for i, caption in enumerate(captions):
        lines.write(json.dumps({"image": f"{i}.png", "caption": caption}) + "\n")


def train(name, *more):
    """-> a job's workdir and time."""
    folder = os.path.join(args.work, name)
    begin = time.time()
    subprocess.run([args.redco, "train", os.path.join(HERE, "captioning.yaml"), f"workdir={folder}", "checkpoint.resume=never",
                    f"data.train={os.path.join(args.work, 'train.jsonl')}", f"train.seed={args.seed}",
                    f"parallel.threads_per_rank={args.threads}", *more],
                   check=True, env=dict(os.environ, OMP_NUM_THREADS=str(args.threads)))
    return folder, time.time() - begin


def peer(folder):
    model = VisionEncoderDecoderModel.from_pretrained(folder, attn_implementation="eager").train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE, weight_decay=0)
    scheduler = get_linear_schedule_with_warmup(optimizer, math.ceil(0.1 * args.steps), args.steps)
    smoother = LabelSmoother(epsilon=SMOOTHING)
    per_epoch, losses = math.ceil(len(images) / BATCH), []
    for step in range(args.steps):
        at = step % per_epoch * BATCH
        rows = epoch_order(len(images), args.seed, step // per_epoch)[at:at + BATCH]
        pixels = torch.tensor(np.stack([images[i] for i in rows]).transpose(0, 3, 1, 2).astype(np.float32) / 127.5 - 1)
        ids = [list(captions[i].encode()) + [END] for i in rows]
        longest = max(map(len, ids))
        labels = torch.tensor([row + [-100] * (longest - len(row)) for row in ids])
        loss = smoother(model(pixel_values=pixels, labels=labels), labels)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        losses.append(loss.item())
    return losses


# A step with learning rate 0 keeps the initial weights.
initial, _ = train("initial", "train.max_steps=1", "train.learning_rate=0")
folder, took = train("losses", f"train.max_steps={args.steps}")
with open(os.path.join(folder, "metrics.jsonl")) as lines:
    ours = [m["loss"] for m in map(json.loads, lines) if "loss" in m]
begin = time.time()
theirs = peer(os.path.join(initial, "checkpoints", "step-00000001"))
worst = max(abs(a - b) / b for a, b in zip(ours, theirs))
print(json.dumps({"experiment": "captioning losses", "steps": len(ours), "largest_relative_difference": worst, "first": [ours[0], theirs[0]],
                  "last": [ours[-1], theirs[-1]], "redco_s": took, "torch_s": time.time() - begin, "threads": args.threads}))
assert len(ours) == len(theirs) == args.steps and worst < 0.01
