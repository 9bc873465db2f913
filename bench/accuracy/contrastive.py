#!/usr/bin/env python3
"""Contrastive learning: compares redco with PyTorch for the same initial weights, batches and steps.

    PEER_PYTHON bench/accuracy/contrastive.py --work /tmp/contrastive [--steps 40] [--loss softmax|sigmoid]

PEER_PYTHON has torch and transformers. Draws images as PNG files with captions, and redco writes the initial weights (one step
with the learning rate 1e-30). The peer is transformers' ViTForImageClassification and BertForSequenceClassification on those
folders: it computes the loss of the whole batch, in redco's order, with torch.optim.AdamW, the same schedule and clipping.
redco runs on several meshes with micro-batches. The largest relative difference of the losses must be below 1e-4.
"""
import argparse
import json
import os
import random
import struct
import subprocess
import zlib

import numpy as np
import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from transformers import BertForSequenceClassification, ViTForImageClassification, get_linear_schedule_with_warmup

from redco_order import batches

HERE = os.path.dirname(os.path.abspath(__file__))
JOB = os.path.join(HERE, "..", "..", "configs", "contrastive", "shapes.yaml")
parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--work", required=True, help="folder for images, checkpoints and logs")
parser.add_argument("--redco", default=os.path.join(HERE, "..", "..", "build", "bin", "redco"))
parser.add_argument("--steps", type=int, default=40)
parser.add_argument("--loss", choices=["softmax", "sigmoid"], default="softmax")
args = parser.parse_args()
torch.set_num_threads(1)
IMAGES, BATCH, LEARNING_RATE, DECAY, SEED, END = 512, 64, 1e-3, 0.1, 42, 256
os.makedirs(args.work, exist_ok=True)


def save_png(path, pixels):
    """An RGB image, uint8 [height, width, 3]."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = b"".join(b"\0" + row.tobytes() for row in pixels)
    header = struct.pack(">IIBBBBB", pixels.shape[1], pixels.shape[0], 8, 2, 0, 0, 0)
    with open(path, "wb") as f:
        f.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


rng, images, captions = random.Random(SEED), [], []
COLOURS = {"red": (210, 40, 40), "green": (40, 160, 60), "blue": (50, 70, 210)}
with open(os.path.join(args.work, "train.jsonl"), "w", encoding="utf-8") as lines:
    for i in range(IMAGES):
        image, words = np.full((32, 32, 3), 245, np.uint8), []
        for left in (0, 16):
            colour, width, height = rng.choice(list(COLOURS)), rng.randint(3, 12), rng.randint(3, 20)
            x, y = left + rng.randint(0, 16 - width), rng.randint(0, 32 - height)
            image[y:y + height, x:x + width] = COLOURS[colour]
            words.append(f"{colour} {width} x {height}")
        images.append(image)
        captions.append(" left of ".join(words))
        save_png(os.path.join(args.work, f"{i}.png"), image)
        lines.write(json.dumps({"image": f"{i}.png", "caption": captions[-1]}) + "\n")


def redco(name, *words):
    """-> the workdir and the losses."""
    workdir = os.path.join(args.work, name)
    subprocess.run([args.redco, "train", JOB, f"workdir={workdir}", f"data.train={os.path.join(args.work, 'train.jsonl')}",
                    "data.eval=[]", "eval.every_n_epochs=~", "checkpoint.save_best_by=~", "checkpoint.resume=never",
                    "parallel.threads_per_rank=1", f"train.global_batch_size={BATCH}", "train.n_epochs=~", "train.schedule=linear",
                    "train.warmup_ratio=0", "train.logging_steps=1", f"train.seed={SEED}", "train.clip_grad_norm=1.0",
                    f"train.weight_decay={DECAY}", f"train.learning_rate={LEARNING_RATE}", f"train.max_steps={args.steps}",
                    f"contrastive.loss_type={args.loss}", *words], check=True, env=dict(os.environ, OMP_NUM_THREADS="1"))
    with open(os.path.join(workdir, "metrics.jsonl"), encoding="utf-8") as metrics:
        return workdir, [j["loss"] for j in map(json.loads, metrics) if "loss" in j]


START = os.path.join(redco("start", "train.max_steps=1", "train.learning_rate=1e-30")[0], "checkpoints", "last")
MODELS = [f"model={{path: {START}}}", f"models.text={{path: {START}/models/text, tokenizer: bytes, frozen: false}}"]
ALL = {name: redco(name, *MODELS, *words)[1] for name, words in {
    "1x1": ["train.per_device_batch_size=64"],
    "micro-batches": ["train.per_device_batch_size=24"],
    "2x1": ["train.per_device_batch_size=8", "parallel.n_ranks=2"],
    "1x2": ["train.per_device_batch_size=24", "parallel.n_ranks=2", "parallel.n_model_shards=2"],
    "zero3": ["train.per_device_batch_size=8", "parallel.n_ranks=2", "parallel.shard_parameters=true"]}.items()}

vit = ViTForImageClassification.from_pretrained(START).eval()
bert = BertForSequenceClassification.from_pretrained(os.path.join(START, "models", "text")).eval()
own = {k: torch.nn.Parameter(v) for k, v in load_file(os.path.join(START, "models", "extra", "model.safetensors")).items()}
decayed, others = [], list(own.values())
for model in (vit, bert):
    for name, p in model.named_parameters():
        (others if name.endswith(".bias") or "norm" in name.lower() else decayed).append(p)
parameters = decayed + others
optimizer = torch.optim.AdamW([{"params": decayed, "weight_decay": DECAY}, {"params": others, "weight_decay": 0.0}],
                              lr=LEARNING_RATE, betas=(0.9, 0.999), eps=1e-8)
schedule = get_linear_schedule_with_warmup(optimizer, 0, args.steps)
ids = [list(c.encode()) + [END] for c in captions]
theirs = []
for batch in batches(IMAGES, BATCH, SEED, args.steps):
    pixels = torch.tensor(np.stack([images[i] for i in batch])).permute(0, 3, 1, 2).float() / 127.5 - 1
    longest = max(len(ids[i]) for i in batch)
    tokens = torch.tensor([ids[i] + [END] * (longest - len(ids[i])) for i in batch])
    mask = torch.tensor([[1] * len(ids[i]) + [0] * (longest - len(ids[i])) for i in batch])
    of_images = F.normalize(vit(pixel_values=pixels).logits, dim=-1)
    of_texts = F.normalize(bert(input_ids=tokens, attention_mask=mask).logits, dim=-1)
    logits = own["logit_scale"].exp() * of_images @ of_texts.T
    if args.loss == "softmax":
        target = torch.arange(len(batch))
        loss = (F.cross_entropy(logits, target) + F.cross_entropy(logits.T, target)) / 2
    else:
        sign = 2 * torch.eye(len(batch)) - 1
        loss = -F.logsigmoid(sign * (logits + own["logit_bias"])).sum() / len(batch)
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(parameters, 1.0)
    optimizer.step()
    schedule.step()
    theirs.append(loss.item())
for name, ours in ALL.items():
    worst = max(abs(a - b) / abs(b) for a, b in zip(ours, theirs))
    print(f"{name}: {len(ours)} steps, loss {ours[0]:.6f} to {ours[-1]:.6f}; largest relative difference to PyTorch {worst:.1e}")
    assert len(ours) == args.steps and worst < 1e-4, list(zip(ours, theirs))
