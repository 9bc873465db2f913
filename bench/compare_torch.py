#!/usr/bin/env python3
"""Compares redco with PyTorch on the same CPUs, in alternating runs: the training step and decoding of GPT-2 124M.

    bench/compare_torch.py --python VENV/bin/python [--redco build/bin/redco] [--rounds 3] [--threads 2]

VENV has torch and transformers. Prints medians, the ratio (above 1: redco is faster) and the share of the measured sgemm peak.
"""
import argparse
import json
import os
import statistics
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))
parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--python", required=True, help="interpreter that has torch and transformers")
parser.add_argument("--redco", default=os.path.join(HERE, "..", "build", "bin", "redco"))
parser.add_argument("--rounds", type=int, default=3)
parser.add_argument("--threads", type=int, default=2)
parser.add_argument("--steps", type=int, default=4)
parser.add_argument("--skip-decode", action="store_true")
args = parser.parse_args()

JOB = os.path.join(HERE, "gpt2-124m.yaml")
ENV = dict(os.environ, OMP_NUM_THREADS=str(args.threads))


def last_json(command):
    done = subprocess.run(command, env=ENV, stdout=subprocess.PIPE, check=True, text=True)
    text = done.stdout[done.stdout.index("{"):]
    return json.loads(text)


def redco(*more):
    return last_json([args.redco, "bench", JOB, "--json", "--steps", str(args.steps),
                      f"parallel.threads_per_rank={args.threads}", *more])


def torch(what):
    return last_json([args.python, os.path.join(HERE, "peer_torch.py"), what, "--threads", str(args.threads),
                      "--steps", str(args.steps)])


def show(name, ours, theirs, unit):
    a, b = statistics.median(ours), statistics.median(theirs)
    print(f"{name:24s} redco {a:9.1f}  torch {b:9.1f} {unit}  ratio {a / b:.2f}")


ours, theirs, share = [], [], []
for _ in range(args.rounds):
    r = redco()
    ours.append(r["tokens_per_s"])
    share.append(r["ceiling_share"])
    theirs.append(torch("train")["tokens_per_s"])
show("training step", ours, theirs, "tokens/s")
print(f"{'':24s} redco at {statistics.median(share):.0%} of the sgemm peak")
if not args.skip_decode:
    ours, theirs, prefill, peer_prefill = [], [], [], []
    for _ in range(args.rounds):
        r = redco("--predict")
        ours.append(r["decode_tokens_per_s"])
        prefill.append(r["prefill_tokens_per_s"])
        p = torch("decode")
        theirs.append(p["decode_tokens_per_s"])
        peer_prefill.append(p["prefill_tokens_per_s"])
    show("prefill", prefill, peer_prefill, "tokens/s")
    show("decoding", ours, theirs, "tokens/s")
