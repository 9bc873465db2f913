#!/usr/bin/env python3
"""Sentence embeddings: compares redco with sentence-transformers for the same weights, batches and steps.

    PEER_PYTHON bench/accuracy/embedding.py --work /tmp/embedding [--loss infonce|symmetric|cosent|cosine_mse]
    PEER_PYTHON bench/accuracy/embedding.py --work /tmp/embedding --model FOLDER --data PAIRS.jsonl [--meshes 1x1]

PEER_PYTHON has torch and sentence-transformers. Without --model, redco writes a small BERT with random weights (one step with the
learning rate 1e-30); data are the generated sentences of redco, infonce with a hard negative, all with Matryoshka embeddings. With
--model, the weights are those of a sentence-transformers folder, and --data are lines {"anchor", "positive"}. The peer opens the
folder with SentenceTransformer and computes the loss of the whole batch with sentence_transformers.losses, in redco's order, with
torch.optim.AdamW, the same schedule and clipping, without dropout. redco runs on several meshes with micro-batches. The largest
relative difference of the losses must be below --most. Afterwards SentenceTransformer opens redco's checkpoint: its embeddings
must be those of `redco embed`. --heldout: pairs that the training lacks; recall@1 of their positives before and after both trainings,
which must differ by at most 0.5 points.
"""
import argparse
import json
import os
import subprocess
import time

import numpy as np
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer import losses
from transformers import get_linear_schedule_with_warmup

from redco_order import batches

HERE = os.path.dirname(os.path.abspath(__file__))
JOB = os.path.join(HERE, "..", "..", "configs", "embedding", "paraphrases.yaml")
parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--work", required=True, help="folder for data, checkpoints and logs")
parser.add_argument("--redco", default=os.path.join(HERE, "..", "..", "build", "bin", "redco"))
parser.add_argument("--loss", choices=["infonce", "symmetric", "cosent", "cosine_mse"], default="infonce")
parser.add_argument("--steps", type=int, default=40)
parser.add_argument("--batch", type=int, default=64)
parser.add_argument("--learning-rate", type=float, default=1e-3)
parser.add_argument("--most", type=float, default=1e-5)
parser.add_argument("--model", help="a sentence-transformers folder")
parser.add_argument("--data", help="JSONL of anchor and positive, for --model")
parser.add_argument("--heldout", help="JSONL as --data, for recall@1")
parser.add_argument("--meshes", nargs="*", help="run only these")
args = parser.parse_args()
torch.set_num_threads(1)
DECAY, SEED = 0.01, 42
os.makedirs(args.work, exist_ok=True)
scored = args.loss in ("cosent", "cosine_mse")
builtin = "builtin:similarity" if scored else "builtin:paraphrases"
DIMS = [64, 16]
COMMON = ["data.eval=[]", "eval.every_n_epochs=~", "checkpoint.save_best_by=~", "checkpoint.every_n_epochs=~",
          "checkpoint.resume=never", "parallel.threads_per_rank=1", "train.n_epochs=~", "train.schedule=linear",
          "train.warmup_ratio=0", "train.logging_steps=1", f"train.seed={SEED}", "train.clip_grad_norm=1.0",
          f"train.weight_decay={DECAY}", f"train.learning_rate={args.learning_rate}", f"train.max_steps={args.steps}",
          f"train.global_batch_size={args.batch}", f"data.train={args.data or builtin}",
          f"data.cache={os.path.join(args.work, 'cache')}", f"embedding.symmetric={str(args.loss == 'symmetric').lower()}"]
if scored:
    COMMON.append(f"embedding.scored_loss={args.loss}")
JOBS = [JOB]
if args.model:  # the architecture is that of the folder
    JOBS = [os.path.join(args.work, "job.yaml")]
    with open(JOBS[0], "w", encoding="utf-8") as f:
        f.write(f"pipeline: embedding\nmodel: {{path: {args.model}, hidden_dropout_prob: 0.0, attention_probs_dropout_prob: 0.0}}\n")
    DIMS = []


def redco(name, *words):
    """-> the workdir, the losses, and the seconds of a step."""
    workdir = os.path.join(args.work, name)
    keys = {w.split("=")[0] for w in words}
    common = [w for w in COMMON if w.split("=")[0] not in keys]
    subprocess.run([args.redco, "train", *JOBS, f"workdir={workdir}", *common, *words], check=True,
                   env=dict(os.environ, OMP_NUM_THREADS="1"))
    with open(os.path.join(workdir, "metrics.jsonl"), encoding="utf-8") as metrics:
        rows = [j for j in map(json.loads, metrics) if "loss" in j]
    return workdir, [j["loss"] for j in rows]


start, given = args.model, []  # given: the weights
if not start:
    start = os.path.join(redco("start", "train.max_steps=1", "train.learning_rate=1e-30")[0], "checkpoints", "last")
    given = [f"model={{path: {start}}}"]
CUTS = {"1x1": [f"train.per_device_batch_size={args.batch}"],
        "micro-batches": ["train.per_device_batch_size=24"],
        "2x1": ["train.per_device_batch_size=8", "parallel.n_ranks=2"],
        "1x2": ["train.per_device_batch_size=24", "parallel.n_ranks=2", "parallel.n_model_shards=2"],
        "zero3": ["train.per_device_batch_size=8", "parallel.n_ranks=2", "parallel.shard_parameters=true"]}
ALL, TOOK = {}, {}
for name, words in CUTS.items():
    if not args.meshes or name in args.meshes:
        began = time.time()
        ALL[name] = redco(name, *given, *words)[1]
        TOOK[name] = time.time() - began

source = args.data or os.path.join(args.work, "cache", builtin.replace(":", "-") + ".jsonl")
with open(source, encoding="utf-8") as f:
    records = [json.loads(line) for line in f]
columns = [c for c in ("anchor", "positive", "negative", "sentence1", "sentence2") if c in records[0]]


def opened(folder):
    """A tokenizer of bytes has no padding token; what pads does not matter."""
    out = SentenceTransformer(folder, device="cpu").eval()
    if out.tokenizer.pad_token is None:
        out.tokenizer.pad_token = out.tokenizer.eos_token
    return out


model = opened(start)
loss_of = {"infonce": lambda: losses.MultipleNegativesRankingLoss(model),
           "symmetric": lambda: losses.MultipleNegativesRankingLoss(model, directions=("query_to_doc", "doc_to_query"),
                                                                    partition_mode="per_direction"),
           "cosent": lambda: losses.CoSENTLoss(model),
           "cosine_mse": lambda: losses.CosineSimilarityLoss(model)}[args.loss]()
if DIMS:
    loss_of = losses.MatryoshkaLoss(model, loss_of, DIMS)
decayed, others = [], []
for name, p in model.named_parameters():
    (others if name.endswith(".bias") or "norm" in name.lower() else decayed).append(p)
optimizer = torch.optim.AdamW([{"params": decayed, "weight_decay": DECAY}, {"params": others, "weight_decay": 0.0}],
                              lr=args.learning_rate, betas=(0.9, 0.999), eps=1e-8)
schedule = get_linear_schedule_with_warmup(optimizer, 0, args.steps)
theirs, began = [], time.time()
for batch in batches(len(records), args.batch, SEED, args.steps):
    rows = [records[i] for i in batch]
    features = [model.tokenize([r[c] for r in rows]) for c in columns]
    labels = torch.tensor([float(r["score"]) for r in rows]) if scored else None
    loss = loss_of(features, labels)
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    schedule.step()
    theirs.append(loss.item())
print(f"sentence-transformers: {len(theirs)} steps in {time.time() - began:.1f} s")
for name, ours in ALL.items():
    worst = max(abs(a - b) / abs(b) for a, b in zip(ours, theirs))
    print(f"{name}: {len(ours)} steps in {TOOK[name]:.1f} s, loss {ours[0]:.6f} to {ours[-1]:.6f}; "
          f"largest relative difference to sentence-transformers {worst:.1e}")
    assert len(ours) == args.steps and worst < args.most, list(zip(ours, theirs))

last = os.path.join(args.work, next(iter(ALL)), "checkpoints", "last")
texts = [r[columns[1]] for r in records[:100]]
lines, output = os.path.join(args.work, "texts.jsonl"), os.path.join(args.work, "texts.npy")
with open(lines, "w", encoding="utf-8") as f:
    f.writelines(json.dumps({"text": t}) + "\n" for t in texts)
subprocess.run([args.redco, "embed", f"model.path={last}", f"predict.input={lines}", f"predict.output={output}",
                "predict.overwrite=true"], check=True, env=dict(os.environ, OMP_NUM_THREADS="1"))
difference = np.abs(np.load(output) - opened(last).encode(texts)).max()
print(f"redco's checkpoint in sentence-transformers: {len(texts)} embeddings, largest difference {difference:.1e}")
assert difference < 1e-5


def recall_1(m, pairs):
    """Percent of the anchors whose nearest positive is their own; equal texts are one."""
    a, p = (m.encode([r[c] for r in pairs], normalize_embeddings=True) for c in ("anchor", "positive"))
    return 100 * np.mean([pairs[best]["positive"] == r["positive"] for best, r in zip((a @ p.T).argmax(1), pairs)])


if args.heldout:
    with open(args.heldout, encoding="utf-8") as f:
        heldout = [json.loads(line) for line in f]
    before, theirs, ours = (recall_1(m, heldout) for m in (opened(start), model.eval(), opened(last)))
    print(f"recall@1 of {len(heldout)} pairs: {before:.1f} before, {theirs:.1f} sentence-transformers, {ours:.1f} redco")
    assert abs(theirs - ours) <= 0.5
