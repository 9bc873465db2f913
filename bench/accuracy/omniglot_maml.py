#!/usr/bin/env python3
"""Omniglot, 5-way 1-shot MAML with RedCoast's CNN: redco, or the same algorithm in PyTorch. Each prints one JSON line.

    bench/accuracy/omniglot_maml.py redco --train images_background_small1.zip --eval images_background_small2.zip --work /tmp/omniglot
    PEER_PYTHON bench/accuracy/omniglot_maml.py torch --train ... --eval ...

PEER_PYTHON has torch and pillow. Both: 28 x 28 pixels, bilinear, ink 1 and paper 0; training characters rotated by 90, 180 and 270 degrees
are additional classes; 32 tasks per step, one inner step of 0.5, Adam 1e-3; LeCun normal weights; tested on 1000 tasks of unseen
characters, with adaptation to each. The accuracies must agree within their intervals.
"""
import argparse
import json
import os
import random
import subprocess
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..")
parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("who", choices=["redco", "torch"])
parser.add_argument("--train", required=True)
parser.add_argument("--eval", required=True)
parser.add_argument("--work", default="runs/omniglot", help="folder for redco's checkpoints and logs")
parser.add_argument("--redco", default=os.path.join(ROOT, "build", "bin", "redco"))
parser.add_argument("--tasks", type=int, default=32000)
parser.add_argument("--eval-tasks", type=int, default=1000)
parser.add_argument("--threads", type=int, default=2)
parser.add_argument("--seed", type=int, default=42)
parser.add_argument("more", nargs="*", help="key=value overrides of redco's job")
args = parser.parse_args()
WAYS, AT_ONCE = 5, 32


def say(**what):
    print(json.dumps(dict(who=args.who, tasks=args.tasks, seed=args.seed, threads=args.threads, **what)), flush=True)


def run_redco():
    begin = time.time()
    subprocess.run([args.redco, "train", os.path.join(ROOT, "configs", "maml", "omniglot.yaml"), f"data.train={args.train}",
                    f"data.eval={args.eval}", f"workdir={args.work}", f"maml.tasks_per_epoch={args.tasks}", "train.n_epochs=1",
                    f"maml.eval_tasks={args.eval_tasks}", f"train.seed={args.seed}", f"parallel.threads_per_rank={args.threads}",
                    "checkpoint.resume=never", "eval.sanity_check=false", *args.more], check=True, stdout=subprocess.DEVNULL)
    seconds = time.time() - begin
    lines = [json.loads(line) for line in open(os.path.join(args.work, "metrics.jsonl"))]
    last = [line for line in lines if any("accuracy_ci95" in key for key in line)][-1]
    say(seconds=round(seconds, 1), tasks_per_s=round(args.tasks / seconds, 1), evaluation=last)


def run_torch():
    import io
    import zipfile

    import torch
    import torch.nn.functional as F
    from PIL import Image
    from torch.func import grad, vmap

    torch.set_num_threads(args.threads)
    torch.manual_seed(args.seed)
    draws = random.Random(args.seed)

    def classes(path, turned):
        out = {}
        archive = zipfile.ZipFile(path)
        for name in sorted(archive.namelist()):
            if not name.endswith(".png"):
                continue
            image = Image.open(io.BytesIO(archive.read(name))).convert("L").resize((28, 28), Image.BILINEAR)
            pixels = 1 - torch.frombuffer(bytearray(image.tobytes()), dtype=torch.uint8).float().view(1, 28, 28) / 255
            for turn in range(4 if turned else 1):
                out.setdefault((os.path.dirname(name), turn), []).append(torch.rot90(pixels, turn, (1, 2)))
        return list(out.values())

    def tasks(data, n):
        support, query = [], []
        for _ in range(n):
            for images in draws.sample(data, WAYS):
                one, other = draws.sample(images, 2)
                support.append(one)
                query.append(other)
        return torch.stack(support).view(n, WAYS, 1, 28, 28), torch.stack(query).view(n, WAYS, 1, 28, 28)

    def net(p, x):
        x = F.avg_pool2d(F.relu(F.conv2d(x, p[0], p[1], padding=1)), 2)
        x = F.avg_pool2d(F.relu(F.conv2d(x, p[2], p[3], padding=1)), 2).flatten(1)
        return F.linear(F.relu(F.linear(x, p[4], p[5])), p[6], p[7])

    def loss(p, x, y):
        return F.cross_entropy(net(p, x), y)

    def adapted(p, x, y, query):
        g = grad(loss)(p, x, y)
        return net([a - 0.5 * b for a, b in zip(p, g)], query)

    def query_loss(p, x, y, query):
        return F.cross_entropy(adapted(p, x, y, query), y)

    params = []
    for shape in [(32, 1, 3, 3), (64, 32, 3, 3), (256, 3136), (WAYS, 256)]:
        fan_in = torch.Size(shape[1:]).numel()
        params += [(torch.randn(shape) / fan_in**0.5).requires_grad_(), torch.zeros(shape[0], requires_grad=True)]
    optimizer = torch.optim.Adam(params, 1e-3)
    train, test = classes(args.train, True), classes(args.eval, False)
    y = torch.arange(WAYS)
    begin = time.time()
    for _ in range(args.tasks // AT_ONCE):
        x, query = tasks(train, AT_ONCE)
        mean = vmap(query_loss, in_dims=(None, 0, None, 0))(tuple(params), x, y, query).mean()
        optimizer.zero_grad()
        mean.backward()
        optimizer.step()
    seconds = time.time() - begin
    right = []
    with torch.no_grad():
        for _ in range(args.eval_tasks // 20):
            x, query = tasks(test, 20)
            logits = vmap(adapted, in_dims=(None, 0, None, 0))(tuple(params), x, y, query)
            right.append((logits.argmax(-1) == y).float().mean(1))
    right = torch.cat(right)
    say(seconds=round(seconds, 1), tasks_per_s=round(args.tasks / seconds, 1), accuracy=round(right.mean().item(), 4),
        accuracy_ci95=round(1.96 * right.std().item() / len(right) ** 0.5, 4))


run_redco() if args.who == "redco" else run_torch()
