"""Where the time of a training step goes: the summary of redco's own profile, by kinds of work."""
import json
import os
import shlex
import subprocess
import tempfile

BENCH = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TWO = ("parallel.threads_per_rank=1", "parallel.n_ranks=2")
JOBS = [
    ("GPT-2 124M, fp32, 1 rank x 2 threads", ("gpt2-124m", "parallel.threads_per_rank=2")),
    ("GPT-2 124M, bf16, 1 rank x 2 threads", ("gpt2-124m", "parallel.threads_per_rank=2", "train.compute_dtype=bf16")),
    ("GPT-2 124M, fp32, 2 ranks x 1 thread, mp 2", ("gpt2-124m", *TWO, "parallel.n_model_shards=2")),
    ("GPT-2 124M, fp32, 2 ranks x 1 thread, ZeRO-3",
     ("gpt2-124m", *TWO, "train.per_device_batch_size=2", "parallel.shard_parameters=true")),
]
PRODUCTS = ("linear", "matmul", "conv2d", "experts")
UPDATE = ("adamw", "sgd", "average", "round_weights", "sum_squares")


def kind(kernel):
    if kernel.startswith("attention"):
        return "attention"
    if kernel.startswith(PRODUCTS):
        return "products"
    return "optimizer" if kernel in UPDATE else "elementwise"


def shares(summary):
    """The share of each kind of work in the profiled steps. `other`: between the kernels."""
    total, sums = summary["seconds"], {}
    for k in summary["kernels"]:
        sums[kind(k["name"])] = sums.get(kind(k["name"]), 0) + k["seconds"]
    # The time in calls: moving bytes and waiting for other ranks. Transfers during the computation don't count.
    sums["collectives"] = sum(c["seconds"] for c in summary["collectives"])
    sums["other"] = max(0.0, total - sum(sums.values()))
    return {k: v / total for k, v in sums.items()}


def profiles(redco, home, wrap=""):
    found = []
    for title, (job, *keys) in JOBS:
        with tempfile.TemporaryDirectory(prefix="redco-compare-") as work:
            run = os.path.join(work, "run")
            subprocess.run([*shlex.split(wrap), redco, "train", os.path.join(BENCH, job + ".yaml"), f"workdir={run}", *keys,
                            "data.train=" + os.path.join(home, "inputs", "text.jsonl"), "train.max_steps=4",
                            "train.profile={start: 3, steps: 2}", "checkpoint.save_optimizer=false"],
                           check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            with open(os.path.join(run, "profile", "summary.json")) as f:
                summary = json.load(f)
            found.append({"title": title, "step_s": summary["seconds"] / summary["n_steps"], "shares": shares(summary)})
    return found
