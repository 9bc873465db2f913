"""PyTorch: second-order MAML (torch.func, vmap over tasks) with RedCoast's CNN: 5-way 1-shot, 28 x 28 pixels, 32 tasks a step."""
import argparse
import statistics
import time

import torch
import torch.nn.functional as F
from torch.func import grad, vmap

from common import peak_memory, report

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--tasks", type=int, default=32)
parser.add_argument("--steps", type=int, default=8)
parser.add_argument("--threads", type=int, default=2)
args = parser.parse_args()
torch.set_num_threads(args.threads)
torch.manual_seed(0)


def net(p, x):
    x = F.avg_pool2d(F.relu(F.conv2d(x, p[0], p[1], padding=1)), 2)
    x = F.avg_pool2d(F.relu(F.conv2d(x, p[2], p[3], padding=1)), 2)
    return F.linear(F.relu(F.linear(x.flatten(1), p[4], p[5])), p[6], p[7])


def loss(p, x, y):
    return F.cross_entropy(net(p, x), y)


def task(p, x, y, query):
    g = grad(loss)(p, x, y)
    return loss([a - 0.5 * b for a, b in zip(p, g)], query, y)


parameters = []
for shape in [(32, 1, 3, 3), (64, 32, 3, 3), (256, 3136), (5, 256)]:
    parameters += [(torch.randn(shape) * .05).requires_grad_(), torch.zeros(shape[0], requires_grad=True)]
adam = torch.optim.Adam(parameters, 1e-3, fused=True)
labels, times = torch.arange(5).repeat(args.tasks, 1), []
for _ in range(args.steps + 2):
    support, query = torch.rand(args.tasks, 5, 1, 28, 28), torch.rand(args.tasks, 5, 1, 28, 28)
    begin = time.perf_counter()
    mean = vmap(task, in_dims=(None, 0, 0, 0))(tuple(parameters), support, labels, query).mean()
    adam.zero_grad()
    mean.backward()
    adam.step()
    times.append(time.perf_counter() - begin)
seconds = statistics.median(times[2:])
report(step_s=seconds, tasks_per_s=args.tasks / seconds, peak_memory_bytes=peak_memory())
