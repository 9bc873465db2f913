#!/usr/bin/env python3
"""Ten updates by torch.optim.Muon for tests/optim/muon_test.cpp.

  python3 scripts/make_muon_fixture.py > tests/fixtures/optim/muon.json

PyTorch orthogonalizes in bf16. `parameters` and `momentum_buffer` come from the same code in float64; in the first case
`bf16` has the parameters as PyTorch computes them.
"""
import json

import torch

MASK = (1 << 64) - 1
# Names and shapes (out, in) as in the test.
MATRICES = [("layers.0.attn.q_proj.weight", (8, 8)), ("layers.0.attn.k_proj.weight", (8, 8)),
            ("layers.0.attn.v_proj.weight", (8, 8)), ("layers.0.attn.o_proj.weight", (8, 8)),
            ("layers.0.mlp.up_proj.weight", (20, 8)), ("layers.0.mlp.down_proj.weight", (8, 20))]


def values(seed, shape):
    """The numbers of testing::Random (SplitMix64), in [-1, 1), rounded to float32."""
    state, out = (seed * 0x9E3779B97F4A7C15 + 1) & MASK, []
    for _ in range(shape[0] * shape[1]):
        x = state = (state + 0x9E3779B97F4A7C15) & MASK
        x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
        x ^= x >> 31
        out.append(-1 + 2 * ((x >> 11) * 2.0 ** -53))
    return torch.tensor(out, dtype=torch.float64).float().reshape(shape)


def updated(settings, dtype):
    """Parameters and momentum after ten updates."""
    parameters = [torch.nn.Parameter(values(7000 + i, shape).to(dtype)) for i, (_, shape) in enumerate(MATRICES)]
    optimizer = torch.optim.Muon(parameters, lr=0.02, weight_decay=0.1, **settings)
    for step in range(10):
        for i, p in enumerate(parameters):
            p.grad = values(100 * step + i, p.shape).to(dtype)
        optimizer.step()
    return parameters, [optimizer.state[p]["momentum_buffer"] for p in parameters]


def listed(tensors):
    return {name: [float("%.9g" % x) for x in t.flatten().tolist()] for (name, _), t in zip(MATRICES, tensors)}


def main():
    cases = []
    for scale, adjust, nesterov in (("adamw", "match_rms_adamw", True), ("original", "original", True),
                                    ("spectral", "spectral_unclamped", True), ("original", "original", False)):
        settings = {"momentum": 0.9, "nesterov": nesterov, "adjust_lr_fn": adjust}
        case = {"scale": scale, "nesterov": nesterov}
        if not cases:
            case["bf16"] = listed(updated(settings, torch.float32)[0])
        bf16, torch.bfloat16 = torch.bfloat16, torch.float64  # the type of PyTorch's iterations
        try:
            parameters, momentum = updated(settings, torch.float64)
        finally:
            torch.bfloat16 = bf16
        case["parameters"] = listed(parameters)
        if not cases:
            case["momentum_buffer"] = listed(momentum)  # the same in all cases
        cases.append(case)
    print(json.dumps({"source": "torch %s" % torch.__version__, "cases": cases}))


main()
