"""PyTorch's part of figure3.py: FSDP (fully_shard) with two processes of one thread."""
import argparse
import json
import math
import statistics
import time

import numpy as np
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from transformers import AutoModelForCausalLM

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--initial", required=True)
parser.add_argument("--batches", required=True)
parser.add_argument("--learning-rate", type=float, required=True)
args = parser.parse_args()
torch.set_num_threads(1)
dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
model = AutoModelForCausalLM.from_pretrained(args.initial, dtype=torch.float32, use_cache=False)
for block in model.transformer.h if hasattr(model, "transformer") else model.model.decoder.layers:
    fully_shard(block, mesh=init_device_mesh("cpu", (world,)))
fully_shard(model, mesh=init_device_mesh("cpu", (world,)))
model.train()
optimizer = torch.optim.AdamW(model.parameters(), lr=args.learning_rate, weight_decay=0.01)
data = np.load(args.batches)


def mine(rows):
    return torch.from_numpy(rows[rank::world].astype(np.int64))


def summed(inputs, labels):
    logits = model(input_ids=inputs).logits
    return torch.nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=-100, reduction="sum")


def over_ranks(value):
    total = torch.tensor(float(value), dtype=torch.float64)
    dist.all_reduce(total)
    return total.item()


losses, times = [], []
for inputs, labels in zip(data["inputs"], data["labels"]):
    begin = time.perf_counter()
    loss = summed(mine(inputs), mine(labels)) / (labels.size / world)  # fully_shard averages the gradients
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    dist.barrier()
    times.append(time.perf_counter() - begin)
    losses.append(over_ranks(loss.item()) / world)

model.eval()
held_out, labels = data["eval_inputs"], data["eval_labels"]
total, rows = 0.0, data["inputs"].shape[1]
with torch.no_grad():
    for first in range(0, len(held_out), rows):
        part, part_labels = held_out[first:first + rows], labels[first:first + rows]
        if len(part) % world:  # every process has as many rows
            part = np.concatenate([part, part[:1]])
            part_labels = np.concatenate([part_labels, np.full_like(part_labels[:1], -100)])
        total += over_ranks(summed(mine(part), mine(part_labels)).item())
if rank == 0:
    print(json.dumps(dict(tokens_per_s=data["inputs"][0].size / statistics.median(times[2:]), loss=losses,
                          perplexity=math.exp(total / int((labels >= 0).sum())))), flush=True)
dist.destroy_process_group()
