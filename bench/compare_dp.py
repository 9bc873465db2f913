#!/usr/bin/env python3
"""Compares a step of DP-SGD (docs/examples/dp_sgd) with PyTorch's plain step and with Opacus, for the same network and
batch of images of 4 x 4 pixels.

Prints one JSON line per program.

    bench/compare_dp.py --redco build/bin/redco --pipeline /tmp/dp_sgd/dp_sgd.so --hidden 1024 --lot-size 200 --threads 1

Run it with a Python that has torch and opacus. The numbers are medians of single steps, in milliseconds.
"""
import argparse
import json
import os
import statistics
import subprocess
import tempfile
import time
import warnings

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--redco", default=os.path.join(ROOT, "build", "bin", "redco"))
parser.add_argument("--pipeline", required=True, help="dp_sgd.so, optimized")
parser.add_argument("--hidden", type=int, default=1024)
parser.add_argument("--lot-size", type=int, default=200)
parser.add_argument("--threads", type=int, default=1)
parser.add_argument("--steps", type=int, default=40)
args = parser.parse_args()
ROWS = args.lot_size + 6 * int(args.lot_size**0.5 + 1)  # the largest lot of the example
os.environ["OMP_NUM_THREADS"] = str(args.threads)


def say(who, seconds):
    print(json.dumps(dict(who=who, hidden=args.hidden, rows=ROWS, threads=args.threads,
                          step_ms=round(1000 * statistics.median(seconds), 3))), flush=True)


with tempfile.TemporaryDirectory() as work:
    job = os.path.join(ROOT, "docs", "examples", "dp_sgd", "job.yaml")
    subprocess.run([args.redco, "train", job, "pipeline=" + os.path.abspath(args.pipeline), "workdir=" + work,
                    "train.global_batch_size=%d" % ROWS, "train.max_steps=%d" % args.steps, "train.logging_steps=1",
                    "parallel.threads_per_rank=%d" % args.threads, "settings.hidden=%d" % args.hidden,
                    "settings.image_size=4", "data.resize_images=true",
                    "settings.lot_size=%d" % args.lot_size, "eval={sanity_check: false}"],
                   check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    with open(os.path.join(work, "metrics.jsonl")) as lines:
        say("redco, private", [r["step_s"] for r in map(json.loads, lines) if "step_s" in r][3:])

import torch  # noqa: E402
from opacus import GradSampleModule  # noqa: E402
from opacus.grad_sample import GradSampleModuleFastGradientClipping  # noqa: E402
from opacus.optimizers import DPOptimizer  # noqa: E402
from opacus.optimizers.optimizer_fast_gradient_clipping import DPOptimizerFastGradientClipping  # noqa: E402
from opacus.utils.fast_gradient_clipping_utils import DPLossFastGradientClipping  # noqa: E402

warnings.filterwarnings("ignore")
torch.set_num_threads(args.threads)
x, y = torch.randn(ROWS, 16), torch.randint(0, 10, (ROWS,))
loss = torch.nn.CrossEntropyLoss()
noise = dict(noise_multiplier=1.0, max_grad_norm=1.0, expected_batch_size=ROWS)


def network():
    return torch.nn.Sequential(torch.nn.Linear(16, args.hidden), torch.nn.Tanh(),
                               torch.nn.Linear(args.hidden, args.hidden), torch.nn.Tanh(),
                               torch.nn.Linear(args.hidden, 10))


def sgd(model):
    return torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)


def measure(who, model, optimizer, criterion):
    seconds = []
    for _ in range(args.steps):
        begin = time.perf_counter()
        optimizer.zero_grad()
        criterion(model(x), y).backward()
        optimizer.step()
        seconds.append(time.perf_counter() - begin)
    say(who, seconds[3:])


plain = network()
measure("torch, plain", plain, sgd(plain), loss)
ghost = GradSampleModuleFastGradientClipping(network(), max_grad_norm=1.0, use_ghost_clipping=True)
optimizer = DPOptimizerFastGradientClipping(sgd(ghost), **noise)
measure("opacus, ghost clipping", ghost, optimizer, DPLossFastGradientClipping(ghost, optimizer, loss, "mean"))
each = GradSampleModule(network())
args.steps = max(6, args.steps // 4)
measure("opacus", each, DPOptimizer(sgd(each), **noise), loss)
