#!/usr/bin/env python3
"""DPO, IPO, SimPO, ORPO, KTO: compares redco with PyTorch for the same initial weights, batches and steps.

    PEER_PYTHON bench/accuracy/dpo.py --work /tmp/dpo [--steps 30] [--loss sigmoid ipo simpo orpo kto]

PEER_PYTHON has torch and transformers. redco writes the initial weights (by one step with the
learning rate 1e-30) and the data. The peer is transformers' GPT2LMHeadModel on that folder, as policy and as reference,
with batches in redco's order, torch.optim.AdamW, the same schedule and clipping. The largest relative difference of
the losses must be below 1e-4. The losses are written as in TRL's DPOTrainer, CPOTrainer, ORPOTrainer and KTOTrainer;
ORPO's is compared together with its log-likelihood (loss + loss_nll).
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
parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--work", required=True, help="folder for the data, checkpoints and logs")
parser.add_argument("--redco", default=os.path.join(HERE, "..", "..", "build", "bin", "redco"))
parser.add_argument("--jobs", default=os.path.join(HERE, "..", "..", "configs", "dpo"))
parser.add_argument("--steps", type=int, default=30)
parser.add_argument("--loss", nargs="+", default=["sigmoid", "ipo", "simpo", "orpo", "kto"])
args = parser.parse_args()
torch.set_num_threads(1)
BATCH, LEARNING_RATE, BETA, GAMMA, SEED = 32, 1e-3, 0.1, 0.5, 42
os.makedirs(args.work, exist_ok=True)


def redco(job, *words):
    subprocess.run([args.redco, "train", os.path.join(args.jobs, job + ".yaml"), "parallel.threads_per_rank=1", *words], check=True,
                   env=dict(os.environ, OMP_NUM_THREADS="1"))


START = os.path.join(args.work, "start")
redco("preferences", f"workdir={START}", "train.max_steps=1", "train.learning_rate=1e-30", "eval.sanity_check=false", "data.eval=[]", "eval.every_n_epochs=~",
      "checkpoint.resume=never")
FOLDER = os.path.join(START, "checkpoints", "last")
DATA = os.path.join(START, "cache", "builtin-preferences.jsonl")
END = 256  # of the bytes tokenizer


def example(line):
    j = json.loads(line)
    prompt = list(j["prompt"].encode())
    return [(prompt + list(j[k].encode()) + [END], len(prompt)) for k in ("chosen", "rejected")]


with open(DATA, encoding="utf-8") as lines:
    examples = [example(line) for line in lines]


def judged(path):
    """[(answer's row, mismatched row or None, sign)]: the mismatched answer is that of the line before."""
    out, before = [], None
    with open(path, encoding="utf-8") as lines:
        for j in map(json.loads, lines):
            prompt, answer = list(j["prompt"].encode()), list(j["completion"].encode()) + [END]
            out.append(((prompt + answer, len(prompt)), before and (prompt + before, len(prompt)),
                        1 if j["label"] else -1))
            before = answer
    return out


def log_probs(model, rows):
    """[rows, T - 1] log-probabilities, and the mask of the answers' tokens."""
    length = max(len(ids) for ids, _ in rows)
    ids = torch.tensor([i + [0] * (length - len(i)) for i, _ in rows])
    logp = F.log_softmax(model(ids).logits[:, :-1], -1).gather(-1, ids[:, 1:, None])[..., 0]
    mask = torch.zeros_like(logp)
    for r, (i, first) in enumerate(rows):
        mask[r, first - 1:len(i) - 1] = 1
    return logp, mask


def log_prob(model, rows, average=False):
    logp, mask = log_probs(model, rows)
    total = (logp * mask).sum(-1)
    return total / mask.sum(-1) if average else total


def relative(policy, reference, rows):
    with torch.no_grad():
        fixed = log_prob(reference, rows)
    return log_prob(policy, rows) - fixed


def pair_loss(kind, policy, reference, rows):
    parts = [[r[side] for r in rows] for side in (0, 1)]
    if kind in ("sigmoid", "ipo"):
        h = relative(policy, reference, parts[0]) - relative(policy, reference, parts[1])
        return (-F.logsigmoid(BETA * h) if kind == "sigmoid" else (h - 1 / (2 * BETA)) ** 2).mean()
    chosen, rejected = (log_prob(policy, part, average=True) for part in parts)
    if kind == "simpo":
        return -F.logsigmoid(BETA * (chosen - rejected - GAMMA / BETA)).mean()
    odds = (chosen - rejected) - (torch.log1p(-torch.exp(chosen)) - torch.log1p(-torch.exp(rejected)))
    logp, mask = log_probs(policy, [(ids, 1) for ids, _ in parts[0]])  # of prompt and answer
    return -(logp * mask).sum() / mask.sum() - (BETA * F.logsigmoid(odds)).mean()


def kto_loss(policy, reference, rows):
    with torch.no_grad():
        z = relative(policy, reference, [other for _, other, _ in rows if other]).mean().clamp(min=0)
    ratio = relative(policy, reference, [row for row, _, _ in rows])
    sign = torch.tensor([float(sign) for _, _, sign in rows])
    return (1 - torch.sigmoid(BETA * sign * (ratio - z))).mean()


def peer(kind):
    policy, reference = (GPT2LMHeadModel.from_pretrained(FOLDER).eval() for _ in range(2))
    optimizer = torch.optim.AdamW(policy.parameters(), lr=LEARNING_RATE, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0)
    schedule = get_linear_schedule_with_warmup(optimizer, 0, args.steps)
    losses = []
    data = judged(os.path.join(args.work, "kto", "cache", "builtin-judged.jsonl")) if kind == "kto" else examples
    for batch in batches(len(data), BATCH, SEED, args.steps):
        rows = [data[i] for i in batch]
        loss = kto_loss(policy, reference, rows) if kind == "kto" else pair_loss(kind, policy, reference, rows)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(policy.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
    return losses


for kind in args.loss:
    workdir = os.path.join(args.work, kind)
    redco("judged" if kind == "kto" else "preferences", f"workdir={workdir}", f"model={{path: {FOLDER}, tokenizer: bytes}}", f"dpo.loss_type={kind}",
          f"train.max_steps={args.steps}", "train.logging_steps=1", "train.warmup_ratio=0", "train.schedule=linear",
          "train.clip_grad_norm=1.0", f"train.seed={SEED}", "data.eval=[]", "eval.every_n_epochs=~", "checkpoint.resume=never")
    with open(os.path.join(workdir, "metrics.jsonl"), encoding="utf-8") as lines:
        ours = [j["loss"] + j.get("loss_nll", 0) for j in map(json.loads, lines) if "loss" in j]
    theirs = peer(kind)
    worst = max(abs(a - b) / abs(b) for a, b in zip(ours, theirs))
    print(f"{kind}: {len(ours)} steps, loss {ours[0]:.6f} to {ours[-1]:.6f}; "
          f"largest relative difference to PyTorch {worst:.1e}")
    assert len(ours) == args.steps and worst < 1e-4, list(zip(ours, theirs))
