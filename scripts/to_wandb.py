#!/usr/bin/env python3
"""to_wandb.py --project PROJECT WORKDIR [WORKDIR ...]: writes runs of redco to Weights & Biases.

Needs Python's package wandb (pip install wandb). Each workdir becomes one run: settings from
config.resolved.yaml, the lines of metrics.jsonl, and the state that `redco runs` shows. Called again, also while
the training runs, it adds the steps that are new. With WANDB_MODE=offline nothing leaves this machine.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path


def flat(values, prefix=""):
    """Numbers of a nested line, with names like eval/loss."""
    out = {}
    for key, value in values.items():
        if isinstance(value, dict):
            out.update(flat(value, f"{prefix}{key}/"))
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            out[prefix + key] = value
    return out


def lines_of(file):
    with open(file, encoding="utf-8") as lines:
        for line in lines:
            if line.endswith("\n"):  # the last line of a running training may be a part of one
                yield json.loads(line)


def write_run(wandb, workdir, project, redco):
    import yaml  # wandb needs it too

    state = json.loads(subprocess.run([redco, "runs", "--json", str(workdir)], check=True, capture_output=True, text=True).stdout)
    config = yaml.safe_load((workdir / "config.resolved.yaml").read_text(encoding="utf-8"))
    name = json.loads((workdir / "run.json").read_text(encoding="utf-8"))["id"]
    run = wandb.init(project=project, id=name, name=str(workdir), config=config, resume="allow")
    first, steps = run.step, {}
    for line in lines_of(workdir / "metrics.jsonl"):
        steps.setdefault(line["step"], {}).update(flat(line))
    for step in sorted(steps):
        if step >= first:
            run.log(steps[step], step=step)
    run.summary["state"] = state["state_text"]
    run.finish(exit_code=0 if state["state"] in ("finished", "running", "stopped") else 1)
    return sum(step >= first for step in steps)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workdirs", nargs="+", type=Path, metavar="WORKDIR")
    parser.add_argument("--project", required=True)
    parser.add_argument("--redco", default="redco", help="the program (default: the one in PATH)")
    options = parser.parse_args()
    try:
        import wandb
    except ImportError:
        sys.exit("to_wandb.py: Python has no package wandb; pip install wandb")
    for workdir in options.workdirs:
        for name in ("metrics.jsonl", "run.json", "config.resolved.yaml"):
            if not (workdir / name).is_file():
                sys.exit(f"to_wandb.py: {workdir} has no {name}, so it is no workdir of a training")
        print(f"{workdir}: {write_run(wandb, workdir, options.project, options.redco)} new steps")


if __name__ == "__main__":
    main()
