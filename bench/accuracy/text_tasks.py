#!/usr/bin/env python3
"""Heads for texts: compares redco with transformers for the same weights, batches and steps.

    PEER_PYTHON bench/accuracy/text_tasks.py --work /tmp/tasks [--task token_classification ...] [--steps 20]

Tasks: token_classification, question_answering, multiple_choice, reranking and topics (several classes) with BERT, and the
heads of LLaMA: decoder_tags, decoder_classes, decoder_topics and decoder_numbers. PEER_PYTHON has torch and transformers. redco writes the initial weights (one step with the
learning rate 1e-30), which AutoModelFor... of transformers opens; the data are redco's generated ones, as bytes. The peer
computes the loss of the whole batch in redco's order, with torch.optim.AdamW, the same schedule and clipping. redco runs on
several meshes with micro-batches. The largest relative difference of the losses must be below 1e-4.
"""
import argparse
import json
import os
import re
import subprocess

import torch
import torch.nn.functional as F
import transformers
from transformers import get_linear_schedule_with_warmup

from redco_order import batches

HERE = os.path.dirname(os.path.abspath(__file__))
CONFIGS = os.path.join(HERE, "..", "..", "configs")
DECODER = ("model={arch: llama, tokenizer: bytes, hidden_size: 64, num_hidden_layers: 2, num_attention_heads: 4, "
           "num_key_value_heads: 2, intermediate_size: 128, max_position_embeddings: 128, initializer_range: 0.1, "
           "pad_token_id: 256%s}")
# job, built-in data, class of transformers, more settings
TASKS = {"token_classification": ("token_classification/entities", "entities", "TokenClassification", []),
         "question_answering": ("question_answering/facts", "questions", "QuestionAnswering", []),
         "multiple_choice": ("multiple_choice/facts", "choices", "MultipleChoice", []),
         "reranking": ("reranking/paraphrases", "paraphrases", "SequenceClassification", []),
         "topics": ("classification/topics", "topics", "SequenceClassification", []),
         "decoder_tags": ("token_classification/entities", "entities", "TokenClassification",
                          [DECODER % ", classifier_dropout: 0"]),
         "decoder_classes": ("classification/text", "reviews", "SequenceClassification", [DECODER % ""]),
         "decoder_topics": ("classification/topics", "topics", "SequenceClassification",
                            [DECODER % ", problem_type: multi_label_classification"]),
         "decoder_numbers": ("regression/text", "shopping", "SequenceClassification", [DECODER % ""])}
parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--work", required=True, help="folder for checkpoints and logs")
parser.add_argument("--redco", default=os.path.join(HERE, "..", "..", "build", "bin", "redco"))
parser.add_argument("--task", choices=list(TASKS), nargs="*", default=list(TASKS))
parser.add_argument("--steps", type=int, default=20)
args = parser.parse_args()
torch.set_num_threads(1)
BATCH, LEARNING_RATE, DECAY, SEED, END = 16, 1e-3, 0.01, 42, 256


def redco(work, job, settings, name, *words):
    """-> the workdir and the losses. A model among the settings and words replaces that of the job."""
    workdir = os.path.join(work, name)
    keys = {w.split("=")[0] for w in words}
    with open(os.path.join(CONFIGS, job + ".yaml"), encoding="utf-8") as f:
        text = f.read()
    if any(w.startswith("model=") for w in [*settings, *words]):
        text = re.sub(r"^model:\n(?:[ #].*\n)+", "", text, flags=re.MULTILINE)
    os.makedirs(work, exist_ok=True)
    file = os.path.join(work, name + ".yaml")
    with open(file, "w", encoding="utf-8") as f:
        f.write(text)
    common = ["data.eval=[]", "eval.every_n_epochs=~", "eval.metrics=[]", "checkpoint.save_best_by=~",
              "checkpoint.every_n_epochs=~", "checkpoint.resume=never", "parallel.threads_per_rank=1", "train.n_epochs=~",
              "train.schedule=linear", "train.warmup_ratio=0", "train.logging_steps=1", f"train.seed={SEED}",
              "train.clip_grad_norm=1.0", f"train.weight_decay={DECAY}", f"train.learning_rate={LEARNING_RATE}",
              f"train.max_steps={args.steps}", f"train.global_batch_size={BATCH}", f"data.cache={os.path.join(work, 'cache')}",
              *settings]
    subprocess.run([args.redco, "train", file, f"workdir={workdir}",
                    *[w for w in common if w.split("=")[0] not in keys], *words], check=True,
                   env=dict(os.environ, OMP_NUM_THREADS="1"))
    with open(os.path.join(workdir, "metrics.jsonl"), encoding="utf-8") as metrics:
        return workdir, [j["loss"] for j in map(json.loads, metrics) if "loss" in j]


def padded(rows, fill=END):
    longest = max(map(len, rows))
    return torch.tensor([list(r) + [fill] * (longest - len(r)) for r in rows])


def inputs(texts, pairs=None):
    """Token ids, mask and types of texts, or of texts and their pairs; a byte is a token."""
    rows = [list(t.encode()) + (list(p.encode()) if pairs else []) for t, p in zip(texts, pairs or texts)]
    out = {"input_ids": padded(rows), "attention_mask": padded([[1] * len(r) for r in rows], 0)}
    if pairs:
        out["token_type_ids"] = padded([[0] * len(t.encode()) + [1] * len(p.encode()) for t, p in zip(texts, pairs)], 0)
    return out


def loss_of(task, model, rows):
    if task in ("token_classification", "decoder_tags"):
        words = [[w if i == 0 else " " + w for i, w in enumerate(r["tokens"])] for r in rows]
        labels = [sum(([model.config.label2id[t]] + [-100] * (len(w.encode()) - 1) for w, t in zip(ws, r["tags"])), [])
                  for ws, r in zip(words, rows)]
        logits = model(**inputs(["".join(ws) for ws in words])).logits
        return F.cross_entropy(logits.flatten(0, 1), padded(labels, -100).flatten())
    if task == "question_answering":
        batch = inputs([r["question"] for r in rows], [r["context"] for r in rows])
        out = model(**batch)
        starts, ends = [], []
        for r in rows:
            at, answer = len(r["question"]) + r["answers"]["answer_start"][0], r["answers"]["text"][0]
            starts.append(at - 1 if r["answers"]["answer_start"][0] > 0 else at)  # words begin with their blank
            ends.append(at + len(answer) - 1)
        hidden = batch["attention_mask"] == 0
        return (F.cross_entropy(out.start_logits.masked_fill(hidden, -1e30), torch.tensor(starts)) +
                F.cross_entropy(out.end_logits.masked_fill(hidden, -1e30), torch.tensor(ends))) / 2
    if task == "multiple_choice":
        batch = inputs([r["context"] for r in rows for _ in r["choices"]],
                       [r["question"] + " " + c for r in rows for c in r["choices"]])
        return model(**{k: v.view(len(rows), 4, -1) for k, v in batch.items()},
                     labels=torch.tensor([r["label"] for r in rows])).loss
    if task == "reranking":
        batch = inputs([r["anchor"] for r in rows for _ in range(2)], [t for r in rows for t in (r["positive"], r["negative"])])
        return F.binary_cross_entropy_with_logits(model(**batch).logits.flatten(), torch.tensor([1.0, 0.0] * len(rows)))
    batch = inputs([r["text"] for r in rows])
    if task == "decoder_classes":
        return model(**batch, labels=torch.tensor([model.config.label2id[r["label"]] for r in rows])).loss
    if task == "decoder_numbers":
        return F.mse_loss(model(**batch).logits.flatten(), torch.tensor([float(r["label"]) for r in rows]))
    labels = torch.zeros(len(rows), model.config.num_labels)
    for i, r in enumerate(rows):
        labels[i, [model.config.label2id[x] for x in r["label"]]] = 1
    return model(**batch, labels=labels).loss


for task in args.task:
    job, data, head, settings = TASKS[task]
    work = os.path.join(args.work, task)
    start = os.path.join(redco(work, job, settings, "start", "train.max_steps=1", "train.learning_rate=1e-30")[0],
                         "checkpoints", "last")
    given = [f"model={{path: {start}, tokenizer: bytes}}"]
    ours = {name: redco(work, job, [], name, *given, *words)[1] for name, words in {
        "1x1": ["train.per_device_batch_size=16"],
        "micro-batches": ["train.per_device_batch_size=5"],
        "2x1": ["train.per_device_batch_size=4", "parallel.n_ranks=2"],
        "1x2": ["train.per_device_batch_size=8", "parallel.n_ranks=2", "parallel.n_model_shards=2"]}.items()}
    with open(os.path.join(work, "cache", f"builtin-{data}.jsonl"), encoding="utf-8") as f:
        records = [json.loads(line) for line in f]
    model, report = getattr(transformers, f"AutoModelFor{head}").from_pretrained(start, output_loading_info=True)
    assert not report["missing_keys"] and not report["mismatched_keys"], report
    model.eval()
    decayed, others = [], []
    for name, p in model.named_parameters():
        (others if name.endswith(".bias") or "norm" in name.lower() else decayed).append(p)
    optimizer = torch.optim.AdamW([{"params": decayed, "weight_decay": DECAY}, {"params": others, "weight_decay": 0.0}],
                                  lr=LEARNING_RATE, betas=(0.9, 0.999), eps=1e-8)
    schedule = get_linear_schedule_with_warmup(optimizer, 0, args.steps)
    theirs = []
    for batch in batches(len(records), BATCH, SEED, args.steps):
        loss = loss_of(task, model, [records[i] for i in batch])
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        theirs.append(loss.item())
    for name, losses in ours.items():
        worst = max(abs(a - b) / abs(b) for a, b in zip(losses, theirs))
        print(f"{task} {name}: {len(losses)} steps, loss {losses[0]:.6f} to {losses[-1]:.6f}; largest relative difference "
              f"to transformers {worst:.1e}", flush=True)
        assert len(losses) == args.steps and worst < 1e-4, list(zip(losses, theirs))
