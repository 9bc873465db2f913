#!/usr/bin/env python3
"""Multi30k, English to German, from scratch: compares redco with PyTorch for the same initial weights, batches and steps.

    PEER_PYTHON bench/accuracy/multi30k.py losses --data multi30k --work /tmp/multi30k
    PEER_PYTHON bench/accuracy/multi30k.py full   --data multi30k --work /tmp/multi30k [--threads 2] [--epochs 8]

PEER_PYTHON has torch, transformers and sacrebleu; --data is a folder with train.en.gz, train.de.gz, val.en.gz and val.de.gz, line by
line. redco trains the tokenizer and writes the initial weights. The peer is transformers' BartForConditionalGeneration on that folder,
with batches in redco's order, torch.optim.AdamW, the same schedule and clipping.

losses   200 steps without dropout: the largest relative difference of the losses; it must be below 1 %.
full     complete trainings with dropout, one seed: their times, and sacreBLEU of the greedy translations of val by each program.
"""
import argparse
import gzip
import json
import math
import os
import resource
import subprocess
import time

import torch
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer, get_linear_schedule_with_warmup
from transformers.trainer_pt_utils import LabelSmoother

from redco_order import epoch_order

HERE = os.path.dirname(os.path.abspath(__file__))
parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("part", choices=["losses", "full"])
parser.add_argument("--data", required=True)
parser.add_argument("--work", required=True, help="folder for the tokenizer, checkpoints and logs")
parser.add_argument("--redco", default=os.path.join(HERE, "..", "..", "build", "bin", "redco"))
parser.add_argument("--threads", type=int, default=1)
parser.add_argument("--steps", type=int, default=200, help="of the part losses")
parser.add_argument("--epochs", type=int, default=8, help="of the part full")
parser.add_argument("--batch", type=int, default=64)
parser.add_argument("--vocab", type=int, default=6000)
parser.add_argument("--seed", type=int, default=42)
parser.add_argument("--learning-rate", type=float, default=7e-4)
parser.add_argument("overrides", nargs="*", help="of the job: KEY=VALUE")
args = parser.parse_args()
torch.set_num_threads(args.threads)
os.makedirs(args.work, exist_ok=True)


def data(name):
    return os.path.join(args.data, name)


class Clock:
    """Seconds, and CPU seconds, which depend less on other load of the machine."""

    def __init__(self):
        self.wall, self.cpu = time.time(), self.used()

    @staticmethod
    def used():
        of = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        return sum(u.ru_utime + u.ru_stime for u in of)

    def took(self):
        return {"s": round(time.time() - self.wall, 2), "cpu_s": round(self.used() - self.cpu, 2)}


def redco(*words):
    clock = Clock()
    subprocess.run([args.redco, *words], check=True, env=dict(os.environ, OMP_NUM_THREADS=str(args.threads)))
    return clock.took()


TOKENIZER = os.path.join(args.work, f"tokenizer-{args.vocab}")
if not os.path.exists(TOKENIZER):
    redco("tokenizer", "train", data("train.en.gz"), data("train.de.gz"), "--output", TOKENIZER, "--vocab-size", str(args.vocab),
          "--special", "<pad>", "</s>")


def train(name, *more):
    """-> a job's workdir and time."""
    folder = os.path.join(args.work, name)
    took = redco("train", os.path.join(HERE, "multi30k.yaml"), f"workdir={folder}", f"model.tokenizer={TOKENIZER}",
                 f"data.train=[{data('train.en.gz')},{data('train.de.gz')}]", "checkpoint.resume=never",
                 f"train.global_batch_size={args.batch}", f"train.seed={args.seed}", f"train.learning_rate={args.learning_rate}",
                 f"parallel.threads_per_rank={args.threads}", *more, *args.overrides)
    return folder, took


def values(folder, key):
    with open(os.path.join(folder, "metrics.jsonl")) as lines:
        return [m[key] for m in map(json.loads, lines) if key in m]


# --- redco's order of examples with data.group_by_length: train/step_order.h ---
def step_order(lengths, seed, epoch, grouped, batch):
    order = epoch_order(len(lengths), seed, epoch)
    if not grouped:
        return order
    out = []
    for number, begin in enumerate(range(0, len(order), 64 * batch)):
        pool = sorted(order[begin:begin + 64 * batch], key=lambda i: -lengths[i])
        whole = len(pool) // batch
        for b in epoch_order(whole, seed, epoch << 32 | number):
            out += pool[b * batch:(b + 1) * batch]
        out += pool[whole * batch:]
    return out


# --- the peer ---
def pairs(split):
    sides = []
    for language in ["en", "de"]:
        with gzip.open(data(f"{split}.{language}.gz"), "rt", encoding="utf-8") as lines:
            sides.append([line.rstrip("\n") for line in lines])
    return sides


def padded(rows, fill):
    n = max(map(len, rows))
    return torch.tensor([r + [fill] * (n - len(r)) for r in rows])


def peer(folder, steps, epochs, grouped, smoothing, dropout, validate):
    """-> losses, seconds of training, BLEU of val."""
    tokenizer = AutoTokenizer.from_pretrained(TOKENIZER)
    eos = tokenizer.eos_token_id
    model = AutoModelForSeq2SeqLM.from_pretrained(folder, dropout=dropout)
    sources, targets = pairs("train")
    clock = Clock()
    sources = [ids[:64] for ids in tokenizer(sources)["input_ids"]]
    targets = [ids[:63] + [eos] for ids in tokenizer(targets)["input_ids"]]
    lengths = [len(s) + len(t) for s, t in zip(sources, targets)]
    per_epoch = math.ceil(len(sources) / args.batch)
    total = steps or epochs * per_epoch
    # weight decay is 0, so it does not matter which parameters have it
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.learning_rate, weight_decay=0)
    scheduler = get_linear_schedule_with_warmup(optimizer, math.ceil(0.1 * total), total)
    smoother = LabelSmoother(epsilon=smoothing)
    losses = []
    torch.manual_seed(args.seed)
    model.train()
    for step in range(total):
        if step % per_epoch == 0:
            order = step_order(lengths, args.seed, step // per_epoch, grouped, args.batch)
        at = step % per_epoch * args.batch
        rows = order[at:at + args.batch]
        labels = padded([targets[i] for i in rows], -100)
        out = model(input_ids=padded([sources[i] for i in rows], tokenizer.pad_token_id),
                    attention_mask=padded([[1] * len(sources[i]) for i in rows], 0), labels=labels)
        loss = smoother(out, labels) if smoothing else out.loss
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        losses.append(loss.item())
    took = clock.took()
    if not validate:
        return losses, took, None
    import sacrebleu
    model.eval()
    sources, references = pairs("val")
    ids = [s[:64] for s in tokenizer(sources)["input_ids"]]
    texts = [""] * len(ids)
    order = sorted(range(len(ids)), key=lambda i: -len(ids[i]))
    with torch.no_grad():
        for at in range(0, len(order), 64):
            rows = order[at:at + 64]
            found = model.generate(input_ids=padded([ids[i] for i in rows], tokenizer.pad_token_id),
                                   attention_mask=padded([[1] * len(ids[i]) for i in rows], 0), max_new_tokens=48, do_sample=False,
                                   num_beams=1)
            for i, text in zip(rows, tokenizer.batch_decode(found, skip_special_tokens=True)):
                texts[i] = text
    return losses, took, sacrebleu.corpus_bleu(texts, [references]).score


def initial():
    """A folder with the initial weights of redco's training: a step with learning rate 0."""
    folder, _ = train("initial", "train.max_steps=1", "train.learning_rate=0")
    return os.path.join(folder, "checkpoints", "step-00000001")


if args.part == "losses":
    folder, took = train("losses", f"train.max_steps={args.steps}", "model.dropout=0", "train.logging_steps=1")
    ours = values(folder, "loss")
    theirs, peer_took, _ = peer(initial(), args.steps, None, True, 0.1, 0.0, False)
    worst = max(abs(a - b) / b for a, b in zip(ours, theirs))
    print(json.dumps({"experiment": "multi30k losses", "steps": len(ours), "largest_relative_difference": worst, "first": [ours[0], theirs[0]],
                      "last": [ours[-1], theirs[-1]], "redco": took, "torch": peer_took, "threads": args.threads}))
    assert len(ours) == len(theirs) == args.steps and worst < 0.01
else:
    folder, took = train("full", f"train.n_epochs={args.epochs}", "train.logging_steps=50",
                         f"data.eval=[{data('val.en.gz')},{data('val.de.gz')}]")
    ours = {k: values(folder, "eval_" + k)[-1] for k in ["bleu", "chrf", "loss"]}
    losses, peer_took, bleu = peer(initial(), None, args.epochs, True, 0.1, 0.1, True)
    print(json.dumps({"experiment": "multi30k", "epochs": args.epochs, "redco_bleu": ours["bleu"], "torch_bleu": bleu, "redco_chrf": ours["chrf"],
                      "redco": took, "redco_evaluation_s": values(folder, "eval_s")[-1], "torch": peer_took, "threads": args.threads}))
    assert ours["bleu"] >= bleu - 1
