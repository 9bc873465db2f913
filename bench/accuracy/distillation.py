#!/usr/bin/env python3
"""Distillation: compares redco with PyTorch for the same initial weights, batches and steps.

    PEER_PYTHON bench/accuracy/distillation.py --work /tmp/distillation [--steps 30]

PEER_PYTHON has torch and transformers. redco trains a teacher for some steps and writes the student's initial weights
(one step with the learning rate 1e-30). The peer is transformers' GPT2LMHeadModel on those folders, with batches in
redco's order, torch.optim.AdamW, the same schedule and clipping. The largest relative difference of the losses must be
below 1e-4.
"""
import argparse
import json
import os
import subprocess

import torch
import torch.nn.functional as F
from transformers import GPT2LMHeadModel, get_linear_schedule_with_warmup

from redco_order import batches

HERE = os.path.dirname(os.path.abspath(__file__))
JOBS = os.path.join(HERE, "..", "..", "configs")
parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--work", required=True, help="folder for the data, checkpoints and logs")
parser.add_argument("--redco", default=os.path.join(HERE, "..", "..", "build", "bin", "redco"))
parser.add_argument("--steps", type=int, default=30)
args = parser.parse_args()
torch.set_num_threads(1)
BATCH, LEARNING_RATE, TEMPERATURE, ALPHA, SEED = 32, 3e-3, 2.0, 0.5, 42
END = 256  # of the bytes tokenizer
os.makedirs(args.work, exist_ok=True)


def redco(job, name, *words):
    workdir = os.path.join(args.work, name)
    subprocess.run([args.redco, "train", os.path.join(JOBS, job), f"workdir={workdir}", "parallel.threads_per_rank=1",
                    "data.eval=[]", "eval.every_n_epochs=~", "checkpoint.resume=never", "train.warmup_ratio=0", "train.schedule=linear",
                    f"train.seed={SEED}", "train.clip_grad_norm=1.0", *words], check=True,
                   env=dict(os.environ, OMP_NUM_THREADS="1"))
    return workdir


TEACHER = os.path.join(redco("lm/markov.yaml", "teacher", "train.max_steps=20"), "checkpoints", "last")
MODEL = f"models.teacher.path={TEACHER}"
START = redco("distillation/markov.yaml", "start", MODEL, "train.max_steps=1", "train.learning_rate=1e-30")
FOLDER = os.path.join(START, "checkpoints", "last")
OURS = redco("distillation/markov.yaml", "ours", MODEL, f"model={{path: {FOLDER}, tokenizer: bytes}}",
             f"train.max_steps={args.steps}", "train.logging_steps=1", f"distillation.temperature={TEMPERATURE}",
             f"distillation.alpha={ALPHA}")
with open(os.path.join(OURS, "metrics.jsonl"), encoding="utf-8") as lines:
    ours = [j["loss"] for j in map(json.loads, lines) if "loss" in j]
with open(os.path.join(START, "cache", "builtin-markov.jsonl"), encoding="utf-8") as lines:
    examples = [list(json.loads(line)["text"].encode()) + [END] for line in lines]

teacher, student = (GPT2LMHeadModel.from_pretrained(f).eval() for f in (TEACHER, FOLDER))
optimizer = torch.optim.AdamW(student.parameters(), lr=LEARNING_RATE, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0)
schedule = get_linear_schedule_with_warmup(optimizer, 0, args.steps)
theirs = []
for batch in batches(len(examples), BATCH, SEED, args.steps):
    ids = torch.tensor([examples[i] for i in batch])  # all of one length
    with torch.no_grad():
        taught = teacher(ids[:, :-1]).logits / TEMPERATURE
    logits = student(ids[:, :-1]).logits
    nll = F.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())
    kl = F.kl_div(F.log_softmax(logits / TEMPERATURE, -1), F.log_softmax(taught, -1), reduction="none", log_target=True)
    loss = (1 - ALPHA) * nll + ALPHA * TEMPERATURE ** 2 * kl.sum(-1).mean()
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(student.parameters(), 1.0)
    optimizer.step()
    schedule.step()
    theirs.append(loss.item())
worst = max(abs(a - b) / abs(b) for a, b in zip(ours, theirs))
print(f"{len(ours)} steps, loss {ours[0]:.6f} to {ours[-1]:.6f}; largest relative difference to PyTorch {worst:.1e}")
assert len(ours) == args.steps and worst < 1e-4, list(zip(ours, theirs))
