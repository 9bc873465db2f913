"""What fedavg.py and dp_sgd.py share: images in IDX files, runs of redco, and the comparison."""
import json
import os
import struct
import subprocess

import numpy as np
import torch
from safetensors.torch import load_file

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
SIZE, CLASSES = 8, 5


def add_arguments(parser, name):
    parser.add_argument("--pipeline", required=True, help=f"{name}.so, built from docs/examples/{name}")
    parser.add_argument("--work", required=True, help="folder for images, checkpoints and logs")
    parser.add_argument("--redco", default=os.path.join(ROOT, "build", "bin", "redco"))
    parser.set_defaults(job=os.path.join(ROOT, "docs", "examples", name, "job.yaml"))


def write_images(folder, n):
    """-> pixels [n, size * size] as redco scales them, labels, and the words that name the files."""
    os.makedirs(folder, exist_ok=True)
    rng = np.random.default_rng(1)
    patterns = rng.integers(60, 180, (CLASSES, SIZE, SIZE))
    labels = rng.integers(0, CLASSES, n)
    images = np.clip(patterns[labels] + rng.normal(0, 60, (n, SIZE, SIZE)), 0, 255).astype(np.uint8)
    files = [os.path.join(os.path.abspath(folder), name) for name in ("images-idx3-ubyte", "labels-idx1-ubyte")]
    with open(files[0], "wb") as f:
        f.write(struct.pack(">IIII", 0x803, n, SIZE, SIZE) + images.tobytes())
    with open(files[1], "wb") as f:
        f.write(struct.pack(">II", 0x801, n) + labels.astype(np.uint8).tobytes())
    pixels = torch.tensor(images.reshape(n, -1)).float() / 255 * 2 - 1
    return pixels, labels.tolist(), [f"data={{train: [{files[0]}, {files[1]}], eval: [], label_names: []}}", f"settings.image_size={SIZE}",
                                     f"settings.n_classes={CLASSES}"]


def train(args, name, words):
    """-> the workdir and the losses."""
    workdir = os.path.join(args.work, name)
    subprocess.run([args.redco, "train", args.job, f"pipeline={os.path.abspath(args.pipeline)}", f"workdir={workdir}",
                    "checkpoint.resume=never", "parallel.threads_per_rank=1", "train.logging_steps=1",
                    "eval={sanity_check: false}", *words], check=True)
    with open(os.path.join(workdir, "metrics.jsonl"), encoding="utf-8") as metrics:
        return workdir, [j["loss"] for j in map(json.loads, metrics) if "loss" in j]


def weights(workdir):
    return load_file(os.path.join(workdir, "checkpoints", "last", "model.safetensors"))


def compare(runs, losses, server):
    """Prints the differences of all runs from the peer's losses and last weights; 1 if one is too large."""
    failed = False
    for name, (workdir, mine) in runs.items():
        assert len(mine) == len(losses)
        apart = max(abs(a - b) / abs(b) for a, b in zip(mine, losses))
        largest = max(w.abs().max().item() for w in server.values())
        moved = max((w - server[k]).abs().max().item() for k, w in weights(workdir).items()) / largest
        failed = failed or not apart < 1e-4 or not moved < 1e-3
        print(f"{name}: losses {mine[0]:.4f} to {mine[-1]:.4f}, largest relative difference {apart:.1e}; "
              f"of the weights {moved:.1e}", flush=True)
    print("FAILED" if failed else "ok")
    return 1 if failed else 0
