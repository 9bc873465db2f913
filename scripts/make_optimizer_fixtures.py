#!/usr/bin/env python3
"""Updates by torch.optim.SGD for tests/train/optimizer_test.cpp.

  python3 scripts/make_optimizer_fixtures.py > tests/fixtures/optim/sgd.json
"""
import json

import torch

torch.manual_seed(7)
cases = []
for momentum, decay in [(0, 0), (0, 0.1), (0.9, 0), (0.9, 0.1), (0.5, 0.01)]:
    weight, bias = (torch.nn.Parameter(torch.randn(*shape)) for shape in [(4, 3), (4,)])
    start = [p.detach().clone() for p in (weight, bias)]
    optimizer = torch.optim.SGD([{"params": [weight]}, {"params": [bias], "weight_decay": 0}],
                                lr=0.1, momentum=momentum, weight_decay=decay)
    steps = []
    for step in range(4):
        optimizer.param_groups[0]["lr"] = optimizer.param_groups[1]["lr"] = rate = 0.1 / (step + 1)
        for p in (weight, bias):
            p.grad = torch.randn_like(p)
        gradients = [p.grad.flatten().tolist() for p in (weight, bias)]
        optimizer.step()
        buffers = [optimizer.state[p].get("momentum_buffer") for p in (weight, bias)]
        steps.append({
            "learning_rate": rate,
            "gradients": gradients,
            "parameters": [p.flatten().tolist() for p in (weight, bias)],
            "momentum_buffer": [] if momentum == 0 else [b.flatten().tolist() for b in buffers]
        })
    cases.append({
        "momentum": momentum,
        "weight_decay": decay,
        "start": [p.flatten().tolist() for p in start],
        "steps": steps
    })
print(json.dumps({"source": "torch %s" % torch.__version__, "cases": cases}))
