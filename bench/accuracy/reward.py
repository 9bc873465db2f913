#!/usr/bin/env python3
"""Reward models: compares redco with PyTorch for the same initial weights, batches and steps.

    PEER_PYTHON bench/accuracy/reward.py --work /tmp/reward [--steps 30]

PEER_PYTHON has torch and transformers. redco writes the initial weights (by one step with the learning rate 1e-30) and
the data. The peer is transformers' AutoModelForSequenceClassification on that folder, with the loss of TRL's
RewardTrainer, batches in redco's order, torch.optim.AdamW and the same schedule and clipping. The largest relative
difference of the losses must be below 1e-4. At the end, transformers opens redco's trained folder, and its scores of
the training answers must be those of `redco predict`.
"""
import argparse
import json
import os
import subprocess

import torch
import torch.nn.functional as F
from transformers import AutoModelForSequenceClassification, get_linear_schedule_with_warmup

from redco_order import batches

HERE = os.path.dirname(os.path.abspath(__file__))
parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--work", required=True, help="folder for the data, checkpoints and logs")
parser.add_argument("--redco", default=os.path.join(HERE, "..", "..", "build", "bin", "redco"))
parser.add_argument("--job", default=os.path.join(HERE, "..", "..", "configs", "reward", "preferences.yaml"))
parser.add_argument("--steps", type=int, default=30)
args = parser.parse_args()
torch.set_num_threads(1)
BATCH, LEARNING_RATE, CENTER, SEED = 32, 1e-3, 0.01, 42
END = 256  # of the bytes tokenizer, and the padding
os.makedirs(args.work, exist_ok=True)


def redco(command, *words):
    done = subprocess.run([args.redco, command, args.job, *words], check=True, stdout=subprocess.PIPE, text=True,
                          env=dict(os.environ, OMP_NUM_THREADS="1"))
    return done.stdout


def train(workdir, *words):
    redco("train", f"workdir={workdir}", "parallel.threads_per_rank=1", "data.eval=[]", "eval.every_n_epochs=~",
          "checkpoint.resume=never", *words)


START, RUN = (os.path.join(args.work, name) for name in ("start", "run"))
train(START, "train.max_steps=1", "train.learning_rate=1e-30")
FOLDER = os.path.join(START, "checkpoints", "last")
with open(os.path.join(START, "cache", "builtin-preferences.jsonl"), encoding="utf-8") as lines:
    records = [json.loads(line) for line in lines]


def scores(model, texts):
    rows = [list(t.encode()) + [END] for t in texts]
    length = max(map(len, rows))
    ids = torch.tensor([r + [END] * (length - len(r)) for r in rows])
    mask = torch.tensor([[1] * len(r) + [0] * (length - len(r)) for r in rows])
    return model(input_ids=ids, attention_mask=mask).logits[:, 0]


def peer():
    model = AutoModelForSequenceClassification.from_pretrained(FOLDER).eval()
    optimizer = torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0)
    schedule = get_linear_schedule_with_warmup(optimizer, 0, args.steps)
    losses = []
    for batch in batches(len(records), BATCH, SEED, args.steps):
        chosen, rejected = (scores(model, [records[i]["prompt"] + records[i][k] for i in batch])
                            for k in ("chosen", "rejected"))
        loss = -F.logsigmoid(chosen - rejected).mean() + CENTER * ((chosen + rejected) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
    return losses


train(RUN, f"model={{path: {FOLDER}, tokenizer: bytes}}", f"reward.center_rewards_coefficient={CENTER}",
      f"train.max_steps={args.steps}", "train.logging_steps=1", "train.warmup_ratio=0", "train.schedule=linear",
      "train.clip_grad_norm=1.0", f"train.seed={SEED}")
with open(os.path.join(RUN, "metrics.jsonl"), encoding="utf-8") as lines:
    ours = [j["loss"] for j in map(json.loads, lines) if "loss" in j]
theirs = peer()
worst = max(abs(a - b) / abs(b) for a, b in zip(ours, theirs))
print(f"reward: {len(ours)} steps, loss {ours[0]:.6f} to {ours[-1]:.6f}; largest relative difference to PyTorch {worst:.1e}")
assert len(ours) == args.steps and worst < 1e-4, list(zip(ours, theirs))

asked = records[:20]
path = os.path.join(args.work, "answers.jsonl")
with open(path, "w", encoding="utf-8") as out:
    for r in asked:
        out.write(json.dumps({"prompt": r["prompt"], "completion": r["chosen"]}) + "\n")
redco("predict", f"workdir={RUN}", f"predict.input={path}", f"predict.output={path}.scores", "predict.overwrite=true")
with open(path + ".scores", encoding="utf-8") as lines:
    said = [json.loads(line)["prediction"] for line in lines]
trained = AutoModelForSequenceClassification.from_pretrained(os.path.join(RUN, "checkpoints", "last")).eval()
with torch.no_grad():
    # The padding token is the end token, so transformers scores the token before it; redco does the same.
    expected = scores(trained, [r["prompt"] + r["chosen"] for r in asked]).tolist()
off = max(abs(a - b) for a, b in zip(said, expected))
print(f"scores of the trained folder: largest difference to transformers {off:.1e}")
assert off < 1e-4, list(zip(said, expected))
