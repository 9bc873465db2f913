#!/usr/bin/env python3
"""Compares redco's MAML with PyTorch's (torch.func, vmap over tasks) on the same CPUs, in alternating runs.

The task is 5-way 1-shot with RedCoast's CNN on 28 x 28 pixels, 32 tasks per step.

    bench/compare_maml.py --python VENV/bin/python [--redco build/bin/redco] [--peer maml_torch.py] [--rounds 3] [--threads 2]

VENV has torch. --peer is a program that prints one JSON line with tasks_s; default: the program below. Prints medians and the
ratio (above 1: redco is faster).
"""
import argparse
import json
import os
import statistics
import subprocess
import tempfile

PEER = """
import json, sys, time, torch, torch.nn.functional as F
from torch.func import grad, vmap
torch.set_num_threads(int(sys.argv[1]))
def net(p, x):
    x = F.avg_pool2d(F.relu(F.conv2d(x, p[0], p[1], padding=1)), 2)
    x = F.avg_pool2d(F.relu(F.conv2d(x, p[2], p[3], padding=1)), 2).flatten(1)
    return F.linear(F.relu(F.linear(x, p[4], p[5])), p[6], p[7])
def loss(p, x, y): return F.cross_entropy(net(p, x), y)
def task(p, x, y, query):
    g = grad(loss)(p, x, y)
    return loss([a - 0.5 * b for a, b in zip(p, g)], query, y)
p = []
for s in [(32, 1, 3, 3), (64, 32, 3, 3), (256, 3136), (5, 256)]:
    p += [(torch.randn(s) * .05).requires_grad_(), torch.zeros(s[0], requires_grad=True)]
adam, times, y = torch.optim.Adam(p, 1e-3), [], torch.arange(5)
for i in range(10):
    a, b = torch.rand(32, 5, 1, 28, 28), torch.rand(32, 5, 1, 28, 28)
    begin = time.perf_counter()
    mean = vmap(task, in_dims=(None, 0, None, 0))(tuple(p), a, y, b).mean()
    adam.zero_grad()
    mean.backward()
    adam.step()
    times.append(time.perf_counter() - begin)
print(json.dumps(dict(tasks_s=32 / sorted(times[2:])[4])))
"""
HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..")
parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--python", required=True, help="interpreter that has torch")
parser.add_argument("--redco", default=os.path.join(ROOT, "build", "bin", "redco"))
parser.add_argument("--peer")
parser.add_argument("--rounds", type=int, default=3)
parser.add_argument("--threads", type=int, default=2)
parser.add_argument("more", nargs="*", help="key=value overrides of redco's job")
args = parser.parse_args()
ENV = dict(os.environ, OMP_NUM_THREADS=str(args.threads))


def redco():
    with tempfile.TemporaryDirectory() as work:
        subprocess.run([args.redco, "train", os.path.join(ROOT, "configs", "maml", "omniglot.yaml"), "data.train=builtin:glyphs",
                        f"workdir={work}/run", "maml.tasks_per_epoch=640", "data.eval=builtin:glyphs", "maml.eval_tasks=8", "train.n_epochs=1", "train.logging_steps=1",
                        f"parallel.threads_per_rank={args.threads}", *args.more], env=ENV, check=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)
        lines = [json.loads(line) for line in open(f"{work}/run/metrics.jsonl")]
    seconds = [line["step_s"] for line in lines if "step_s" in line][2:]
    return 32 / statistics.median(seconds)


def torch():
    command = [args.python, args.peer] if args.peer else [args.python, "-c", PEER, str(args.threads)]
    return json.loads(subprocess.run(command, env=ENV, check=True, stdout=subprocess.PIPE, text=True).stdout)["tasks_s"]


ours, theirs = [], []
for _ in range(args.rounds):
    ours.append(redco())
    theirs.append(torch())
a, b = statistics.median(ours), statistics.median(theirs)
print(f"redco {a:.1f}  torch {b:.1f} tasks/s  ratio {a / b:.2f}")
