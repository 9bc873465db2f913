#!/usr/bin/env python3
"""Trains the jobs of configs/rl with several seeds and prints the returns of the policies.

  bench/accuracy/rl.py [--redco build/bin/redco] [--seeds 1,2,3] [--jobs cartpole_ppo,...] [key=value ...]

Prints one JSON line per run: job, seed, mean_return of the last evaluation (100 episodes from other initial states than
in training, no exploration), the best mean_return, and the seconds of the run. Then it prints one line per job: the
median over seeds, and the return that solves the task. Other arguments override keys of every job.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
WANTED = {"cartpole_ppo": 475, "acrobot_ppo": -100, "pendulum_ddpg": -200, "pendulum_ppo": -200, "mountaincar_ddpg": 90}


def run(redco, job, seed, overrides):
    with tempfile.TemporaryDirectory() as folder:
        begin = time.time()
        words = [redco, "train", str(ROOT / "configs" / "rl" / f"{job}.yaml"), f"workdir={folder}/run",
                 f"train.seed={seed}", "rl.n_eval_episodes=100", *overrides]
        done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode != 0:
            sys.exit(f"{' '.join(words)} failed:\n{done.stdout[-2000:]}")
        took = time.time() - begin
        lines = [json.loads(line) for line in open(f"{folder}/run/metrics.jsonl")]
    curve = [(x["step"], x["eval_mean_return"]) for x in lines if "eval_mean_return" in x]
    steps = max(x.get("env_steps", 0) for x in lines)
    return {"job": job, "seed": seed, "mean_return": curve[-1][1], "best_mean_return": max(r for _, r in curve),
            "env_steps": steps, "updates": curve[-1][0], "seconds": round(took, 1),
            "curve": [round(r, 1) for _, r in curve]}


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--redco", default=str(ROOT / "build" / "bin" / "redco"))
    p.add_argument("--seeds", default="1,2,3")
    p.add_argument("--jobs", default=",".join(WANTED))
    p.add_argument("overrides", nargs="*")
    a = p.parse_args()
    for job in a.jobs.split(","):
        runs = []
        for seed in a.seeds.split(","):
            runs.append(run(a.redco, job, seed, a.overrides))
            print(json.dumps(runs[-1]), flush=True)
        median = statistics.median(r["mean_return"] for r in runs)
        print(json.dumps({"job": job, "median_mean_return": median, "wanted": WANTED[job],
                          "reached": median >= WANTED[job], "seconds": max(r["seconds"] for r in runs)}), flush=True)


main()
