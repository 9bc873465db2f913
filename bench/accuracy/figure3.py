#!/usr/bin/env python3
"""Figure 3 of the RedCoast paper, scaled to two processes on CPUs: trains a causal LM in fp32 with AdamW, with redco and with its peers,
from the same initial weights, on the same batches, with the same steps. Prints tokens/s and the perplexity of held-out text.

    HOME/torch/bin/python bench/accuracy/figure3.py --text wikitext-2/valid.txt --work /tmp/figure3 --home HOME [--models gptj opt]

HOME is the folder of `bench/compare setup`. The first 90 % of the lines of --text are for training. redco trains the tokenizer (BPE) and
draws the initial weights; there is no dropout. Models: gptj has 8 layers, width 512 and the vocabulary of GPT-J-6B; opt is OPT-125M.

    redco mp 2      two model shards          RedCoast mp 2   n_model_shards=2 on JAX, two CPU devices
    redco ZeRO-3    two replicas              FSDP            fully_shard() of PyTorch, two processes

Each peer has two CPUs. The programs run one after the other; --rounds repeats them all, and the medians of tokens/s are printed.
"""
import argparse
import collections
import json
import math
import os
import statistics
import subprocess
import sys

import numpy as np

from redco_order import batches

HERE = os.path.dirname(os.path.abspath(__file__))
parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--text", required=True)
parser.add_argument("--work", required=True)
parser.add_argument("--home", required=True, help="folder of bench/compare setup")
parser.add_argument("--redco", default=os.path.join(HERE, "..", "..", "build", "bin", "redco"))
parser.add_argument("--models", nargs="+", choices=["gptj", "opt"], default=["gptj", "opt"])
parser.add_argument("--steps", type=int, default=40)
parser.add_argument("--rows", type=int, default=8, help="of a step, over both processes")
parser.add_argument("--length", type=int, default=256)
parser.add_argument("--rounds", type=int, default=1)
parser.add_argument("--learning-rate", type=float, default=3e-4)
parser.add_argument("--only", nargs="+", help="names of programs, e.g. 'redco mp 2'")
args = parser.parse_args()
os.makedirs(args.work, exist_ok=True)
PYTHON = {kind: os.path.join(args.home, kind, "bin", "python") for kind in ("torch", "jax")}
MODELS = {"gptj": ["preset: gpt-j-6b, n_layer: 8, n_embd: 512, n_head: 8"],
          "opt": ["preset: opt-125m, dropout: 0.0, attention_dropout: 0.0"]}
SEED = 1


def path(*parts):
    return os.path.join(args.work, *parts)


def redco(*words):
    subprocess.run([args.redco, *words], check=True, stdout=subprocess.DEVNULL)


def prepare_text():
    """train.txt, eval.txt, a tokenizer, and the tokens of both files."""
    with open(args.text, encoding="utf-8") as lines:
        lines = list(lines)
    cut = len(lines) * 9 // 10
    for name, part in (("train", lines[:cut]), ("eval", lines[cut:])):
        with open(path(name + ".txt"), "w", encoding="utf-8") as out:
            out.writelines(part)
    if not os.path.exists(path("tokenizer")):
        redco("tokenizer", "train", path("train.txt"), "--output", path("tokenizer"), "--vocab-size", "16000")
    code = ("import sys, numpy as np; from transformers import AutoTokenizer; t = AutoTokenizer.from_pretrained(sys.argv[1])\n"
            "for f in sys.argv[2:]: np.save(f + '.npy', t(open(f, encoding='utf-8').read(), add_special_tokens=False).input_ids + "
            "[t.eos_token_id])")
    subprocess.run([PYTHON["torch"], "-c", code, path("tokenizer"), path("train.txt"), path("eval.txt")], check=True)


def windows(name):
    """redco's windows of a text: rows of `length` inputs and labels, and -100 after the end."""
    tokens, rows = np.load(path(name + ".txt.npy")), []
    for first in range(0, len(tokens) - 1, args.length):
        row = tokens[first:first + args.length + 1]
        rows.append(np.pad(row, (0, args.length + 1 - len(row)), constant_values=-100))
    rows = np.stack(rows).astype(np.int32)
    return np.maximum(rows[:, :-1], 0), rows[:, 1:]


def prepare_batches():
    inputs, labels = windows("train")
    order = list(batches(len(inputs), args.rows, SEED, args.steps))
    if any(len(step) != args.rows for step in order) or any((labels[step] < 0).any() for step in order):
        sys.exit("a step has a window that is not full: choose another number of --steps")
    held_out, held_out_labels = windows("eval")
    np.savez(path("batches.npz"), inputs=inputs[order], labels=labels[order], eval_inputs=held_out, eval_labels=held_out_labels)


def job(model, workdir, *more):
    return ["train", "--config", path(model + ".yaml"), "workdir=" + workdir, *more]


def prepare_model(model):
    with open(path(model + ".yaml"), "w") as out:
        out.write(f"""pipeline: lm
model: {{{MODELS[model][0]}, tokenizer: {path("tokenizer")}}}
data: {{train: {path("train.txt")}, eval: {path("eval.txt")}, documents: file, max_length: {args.length}}}
train: {{global_batch_size: {args.rows}, per_device_batch_size: {args.rows // 2}, max_steps: {args.steps}, learning_rate: {args.learning_rate},
        schedule: constant, warmup_ratio: 0.0, weight_decay: 0.01, decay_norms_and_biases: true, clip_grad_norm: 1.0, seed: {SEED},
        logging_steps: 1}}
eval: {{sanity_check: false, per_device_batch_size: {args.rows // 2}}}
checkpoint: {{save_optimizer: false, resume: never}}
""")
    initial = path(model + "-initial", "checkpoints", "step-00000001")
    if not os.path.exists(initial):  # a step with learning rate 0 keeps the initial weights
        redco(*job(model, path(model + "-initial"), "train.max_steps=1", "train.learning_rate=0", "data.eval=[]"))
    return initial


def run_redco(model, initial, *more):
    workdir = path("run")
    subprocess.run(["rm", "-rf", workdir], check=True)
    redco(*job(model, workdir, "model.preset=~", "model.path=" + initial, "parallel={n_ranks: 2, threads_per_rank: 1}", *more))
    with open(os.path.join(workdir, "metrics.jsonl")) as lines:
        lines = [json.loads(line) for line in lines]
    steps = [r["tokens_per_s"] for r in lines if "step_s" in r]
    return {"tokens_per_s": statistics.median(steps[2:]), "loss": [r["loss"] for r in lines if "step_s" in r],
            "perplexity": math.exp([r["eval_loss"] for r in lines if "eval_loss" in r][-1])}


def run_peer(kind, program, initial):
    command = [PYTHON[kind], *program, "--initial", initial, "--batches", path("batches.npz"), "--learning-rate", str(args.learning_rate)]
    threads = {"OMP_NUM_THREADS": "1"} if kind == "torch" else {}
    done = subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=dict(os.environ, **threads))
    return json.loads(done.stdout.strip().splitlines()[-1])


PROGRAMS = {
    "redco mp 2": lambda m, i: run_redco(m, i, "parallel.n_model_shards=2", f"train.per_device_batch_size={args.rows}"),
    "RedCoast mp 2": lambda m, i: run_peer("jax", [os.path.join(HERE, "figure3_jax.py")], i),
    "redco ZeRO-3": lambda m, i: run_redco(m, i, "parallel.shard_parameters=true"),
    "FSDP": lambda m, i: run_peer("torch", ["-m", "torch.distributed.run", "--nproc-per-node", "2", os.path.join(HERE, "figure3_fsdp.py")], i),
}

prepare_text()
prepare_batches()
for model in args.models:
    initial, results = prepare_model(model), collections.defaultdict(list)
    for _ in range(args.rounds):
        for name, run in PROGRAMS.items():
            if args.only and name not in args.only:
                continue
            results[name].append(run(model, initial))
            print(json.dumps(dict(model=model, program=name, **results[name][-1])), file=sys.stderr, flush=True)
    print(f"\n{model}: {args.steps} steps of {args.rows} x {args.length} tokens\n| program | tokens/s | perplexity |\n|---|---|---|")
    for name, runs in results.items():
        speed = statistics.median(r["tokens_per_s"] for r in runs)
        print(f"| {name} | {speed:.0f} | {runs[-1]['perplexity']:.3f} |", flush=True)
