#!/usr/bin/env python3
"""Federated averaging: compares docs/examples/fedavg with PyTorch for the same initial weights, clients and images.

    PEER_PYTHON bench/accuracy/fedavg.py --pipeline fedavg.so --work /tmp/fedavg [--rounds 30]

PEER_PYTHON has torch and safetensors. Writes IDX files of noisy patterns, and redco writes the initial weights (one step with the
learning rate 1e-30). The peer trains the clients of a round one after the other with torch.optim.SGD, and takes their weighted
mean. The clients, their images and their orders are redco's (EpochOrder). redco runs on several meshes. The largest relative
difference of the losses must be below 1e-4, and that of the weights after the last round below 1e-3 of the largest weight.
"""
import argparse
import sys

import torch
import torch.nn.functional as F

import image_peers
from redco_order import epoch_order

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
image_peers.add_arguments(parser, "fedavg")
parser.add_argument("--rounds", type=int, default=30)
args = parser.parse_args()
torch.set_num_threads(1)
IMAGES, CLIENTS, SHARDS, CHOSEN, EPOCHS, BATCH, RATE, SEED = 1003, 40, 2, 6, 3, 8, 0.1, 42

pixels, labels, data = image_peers.write_images(args.work, IMAGES)
JOB = data + [f"settings.n_clients={CLIENTS}", f"settings.shards_per_client={SHARDS}", f"settings.local_epochs={EPOCHS}",
              f"settings.local_batch_size={BATCH}", f"settings.local_learning_rate={RATE}", f"train.global_batch_size={CHOSEN}",
              f"train.seed={SEED}", f"train.max_steps={args.rounds}"]
start = image_peers.weights(image_peers.train(args, "start", JOB + ["train.max_steps=1", "train.learning_rate=1e-30"])[0])
runs = {name: image_peers.train(args, name, JOB + words) for name, words in {
    "1x1": [], "micro-batches": ["train.per_device_batch_size=2"], "2x1": ["parallel.n_ranks=2"],
    "1x2": ["parallel.n_ranks=2", "parallel.n_model_shards=2"]}.items()}

by_class = sorted(range(IMAGES), key=lambda i: (labels[i], i))
n_shards = CLIENTS * SHARDS
rows = [[] for _ in range(CLIENTS)]
for k, shard in enumerate(epoch_order(n_shards, SEED, 0)):
    rows[shard // SHARDS] += by_class[k * IMAGES // n_shards:(k + 1) * IMAGES // n_shards]
server = {name: w.clone() for name, w in start.items()}
losses = []
for number in range(args.rounds):
    total, seen, mean = 0, 0.0, {name: torch.zeros_like(w) for name, w in server.items()}
    for client in epoch_order(CLIENTS, SEED, 1 + number)[:CHOSEN]:
        own = {name: torch.nn.Parameter(w.clone()) for name, w in server.items()}
        optimizer = torch.optim.SGD(own.values(), lr=RATE)
        mine = rows[client]
        for epoch in range(EPOCHS):
            order = epoch_order(len(mine), SEED, (1 << 40) + (number * CLIENTS + client) * EPOCHS + epoch)
            for first in range(0, len(mine), BATCH):
                batch = [mine[i] for i in order[first:first + BATCH]]
                h = torch.relu(F.linear(pixels[batch], own["net.fc1.weight"], own["net.fc1.bias"]))
                logits = F.linear(h, own["net.fc2.weight"], own["net.fc2.bias"])
                loss = F.cross_entropy(logits, torch.tensor([labels[i] for i in batch]))
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                seen += loss.item() * len(batch)
        total += len(mine)
        for name, w in own.items():
            mean[name] += len(mine) * w.detach()
    server = {name: w / total for name, w in mean.items()}
    losses.append(seen / EPOCHS / total)
sys.exit(image_peers.compare(runs, losses, server))
