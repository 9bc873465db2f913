#!/usr/bin/env python3
"""Makes tests/fixtures/dit: a tiny diffusion transformer with the results of PyTorch.

An implementation of the equations of src/models/dit.cpp with PyTorch's own layers, after the papers: DiT (Peebles &
Xie 2023), with the text of PixArt-alpha (Chen et al. 2024) in cross-attention and its shared modulation
(adaLN-single). Needs torch and safetensors; tests don't: the files are committed. Usage:
scripts/make_dit_fixture.py
"""
import copy
import json
import math
import pathlib

import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from torch import nn

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "tests" / "fixtures" / "dit"
CONFIG = {
    "architectures": ["DiTForTextToImage"], "model_type": "dit", "vocab_size": 37, "max_position_embeddings": 9,
    "num_channels": 3, "image_size": [12, 8], "patch_size": [4, 2], "hidden_size": 24, "num_attention_heads": 3,
    "num_hidden_layers": 2, "num_text_layers": 2, "intermediate_size": 38, "num_frequencies": 7,
    "hidden_act": "gelu_pytorch_tanh", "hidden_dropout_prob": 0.0, "layer_norm_eps": 1e-6, "initializer_range": 0.02}
WIDTH, HEADS, EPS = CONFIG["hidden_size"], CONFIG["num_attention_heads"], CONFIG["layer_norm_eps"]
CHANNELS, (HEIGHT, BREADTH), (PATCH_H, PATCH_W) = 3, CONFIG["image_size"], CONFIG["patch_size"]
ROWS, COLUMNS = HEIGHT // PATCH_H, BREADTH // PATCH_W


class Named(nn.Module):
    """Modules with the names of the checkpoint."""

    def __init__(self, **modules):
        super().__init__()
        for name, module in modules.items():
            self.add_module(name, module)


def attend(q, k, v, mask):
    """[B, T, C] of heads side by side; mask [B, S]: keys that are seen."""
    heads = [x.unflatten(-1, (HEADS, WIDTH // HEADS)).transpose(1, 2) for x in (q, k, v)]
    seen = None if mask is None else mask[:, None, None, :].bool()
    return F.scaled_dot_product_attention(*heads, attn_mask=seen).transpose(1, 2).flatten(-2)


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.proj = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x, mask=None):
        return self.proj(attend(*self.qkv(x).chunk(3, dim=-1), mask))


class CrossAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.q_linear, self.kv_linear = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, 2 * WIDTH)
        self.proj = nn.Linear(WIDTH, WIDTH)

    def forward(self, x, memory, mask):
        return self.proj(attend(self.q_linear(x), *self.kv_linear(memory).chunk(2, dim=-1), mask))


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(WIDTH, CONFIG["intermediate_size"])
        self.fc2 = nn.Linear(CONFIG["intermediate_size"], WIDTH)

    def forward(self, x):
        return self.fc2(F.gelu(self.fc1(x), approximate="tanh"))


class TextBlock(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH, eps=EPS), nn.LayerNorm(WIDTH, eps=EPS)
        self.attn, self.mlp = Attention(), Mlp()

    def forward(self, x, mask):
        x = x + self.attn(self.norm1(x), mask)
        return x + self.mlp(self.norm2(x))


def modulated(x, shift, scale):
    return F.layer_norm(x, (WIDTH,), eps=EPS) * (1 + scale) + shift


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale_shift_table = nn.Parameter(torch.empty(6, WIDTH))
        self.attn, self.cross_attn, self.mlp = Attention(), CrossAttention(), Mlp()

    def forward(self, x, modulation, memory, mask):
        shift, scale, gate, mlp_shift, mlp_scale, mlp_gate = (modulation + self.scale_shift_table).chunk(6, dim=1)
        x = x + gate * self.attn(modulated(x, shift, scale))
        x = x + self.cross_attn(x, memory, mask)
        return x + mlp_gate * self.mlp(modulated(x, mlp_shift, mlp_scale))


def places(dtype):
    """[1, N, C]: sines and cosines of the row, then of the column."""
    frequencies = 10000.0 ** (-torch.arange(WIDTH // 4, dtype=torch.float64) / (WIDTH // 4))
    rows, columns = torch.meshgrid(torch.arange(ROWS), torch.arange(COLUMNS), indexing="ij")
    angles = [p.flatten().double()[:, None] * frequencies for p in (rows, columns)]
    return torch.cat([f(a) for a in angles for f in (torch.sin, torch.cos)], dim=1)[None].to(dtype)


class DiT(nn.Module):
    def __init__(self):
        super().__init__()
        self.text = Named(embed=nn.Embedding(CONFIG["vocab_size"], WIDTH),
                          positions=nn.Embedding(CONFIG["max_position_embeddings"], WIDTH),
                          blocks=nn.ModuleList(TextBlock() for _ in range(CONFIG["num_text_layers"])),
                          norm=nn.LayerNorm(WIDTH, eps=EPS))
        self.text.start = nn.Parameter(torch.empty(1, 1, WIDTH))
        patch = (PATCH_H, PATCH_W)
        self.x_embedder = Named(proj=nn.Conv2d(CHANNELS, WIDTH, patch, stride=patch))
        self.t_embedder = Named(mlp=nn.Sequential(nn.Linear(2 * CONFIG["num_frequencies"], WIDTH), nn.SiLU(),
                                                  nn.Linear(WIDTH, WIDTH)))
        self.t_block = nn.Sequential(nn.SiLU(), nn.Linear(WIDTH, 6 * WIDTH))
        self.blocks = nn.ModuleList(Block() for _ in range(CONFIG["num_hidden_layers"]))
        self.final_layer = Named(linear=nn.Linear(WIDTH, CHANNELS * PATCH_H * PATCH_W))
        self.final_layer.scale_shift_table = nn.Parameter(torch.empty(2, WIDTH))

    def encode(self, ids, mask):
        x = self.text.embed(ids) + self.text.positions.weight[:ids.shape[1]]
        x = torch.cat([self.text.start.expand(len(ids), 1, WIDTH), x], dim=1)
        for block in self.text.blocks:
            x = block(x, mask)
        return self.text.norm(x)

    def embed_time(self, time):
        n = CONFIG["num_frequencies"]
        angles = 1000 * time * torch.exp(-math.log(10000.0) * torch.arange(n, dtype=torch.float64) / n).to(time.dtype)
        return self.t_embedder.mlp(torch.cat([torch.cos(angles), torch.sin(angles)], dim=1))

    def forward(self, pixel_values, features, input_ids, attention_mask, labels):
        mask = F.pad(attention_mask, (1, 0), value=1)  # the first token of the memory is always seen
        memory = self.encode(input_ids, mask)
        time = self.embed_time(features) + memory[:, 0]
        modulation = self.t_block(time).unflatten(1, (6, WIDTH))
        x = self.x_embedder.proj(pixel_values).flatten(2).transpose(1, 2)
        x = x + places(x.dtype)
        hidden = [x]
        for block in self.blocks:
            x = block(x, modulation, memory, mask)
            hidden.append(x)
        shift, scale = (time[:, None] + self.final_layer.scale_shift_table).chunk(2, dim=1)
        x = self.final_layer.linear(modulated(x, shift, scale))
        x = F.fold(x.transpose(1, 2), (HEIGHT, BREADTH), (PATCH_H, PATCH_W), stride=(PATCH_H, PATCH_W))
        return {f"hidden.{i}": h for i, h in enumerate(hidden)} | {"logits": x, "loss": F.mse_loss(x, labels)}


def compute(model, inputs):
    """Hidden states, image, loss, gradients; the losses of three AdamW steps."""
    results = model(**inputs)
    results["loss"].backward()
    results |= {f"grad.{n}": p.grad.clone() for n, p in model.named_parameters()}
    adamw = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.01)
    for step in range(3):
        adamw.zero_grad()
        loss = model(**inputs)["loss"]
        results[f"loss_step{step + 1}"] = loss
        loss.backward()
        adamw.step()
    results["loss_after3"] = model(**inputs)["loss"]
    return {n: t.detach().clone().contiguous() for n, t in results.items()}


def main():
    generator = torch.Generator().manual_seed(7)
    normal = lambda *shape: torch.randn(shape, generator=generator)
    model = DiT()
    with torch.no_grad():
        for name, p in sorted(model.named_parameters()):
            # No parameter keeps a special initial value. 1.3: activations of order 1 in all layers.
            scale = 0.6 if "embed.weight" in name or "positions" in name else 1.3 / p[0].numel() ** 0.5
            p.copy_(normal(*p.shape) * (scale if p.dim() > 1 and "table" not in name else 0.2))
            if name.startswith("t_block"):
                p.mul_(0.4)  # factors of order 1 in all blocks, or rounding in bf16 grows from block to block
            if "norm" in name and name.endswith("weight"):
                p.add_(1)
    rows, length = 4, 6
    ids = torch.randint(0, CONFIG["vocab_size"], (rows, length), generator=generator)
    mask = torch.ones_like(ids)
    mask[1, 4:] = 0  # a shorter caption
    mask[3, :] = 0   # no caption
    inputs = {"pixel_values": normal(rows, CHANNELS, HEIGHT, BREADTH), "input_ids": ids, "attention_mask": mask,
              "features": torch.tensor([[0.0], [0.31], [0.77], [1.0]]),
              "labels": normal(rows, CHANNELS, HEIGHT, BREADTH)}
    FOLDER.mkdir(exist_ok=True)
    save_file(model.state_dict(), FOLDER / "model.safetensors", metadata={"format": "pt"})
    twin = copy.deepcopy(model).double()
    single = compute(model, inputs)
    double = compute(twin, {n: t.double() if t.is_floating_point() else t for n, t in inputs.items()})
    save_file(inputs | single, FOLDER / "expected.safetensors")
    differences = {n: {"max_abs_diff": (single[n].double() - double[n]).abs().max().item(),
                       "max_abs": double[n].abs().max().item()} for n in single}
    write = lambda file, value: (FOLDER / file).write_text(json.dumps(value, indent=2) + "\n")
    write("config.json", CONFIG)
    write("tolerances.json", {"float32_vs_float64": differences})
    write("fixture.json", {"name": "dit", "family": "dit", "task": "text-to-image", "tokenizer": None,
                           "optimizer": {"name": "AdamW", "lr": 0.001, "betas": [0.9, 0.999], "eps": 1e-08,
                                         "weight_decay": 0.01, "steps": 3, "clip": None}})
    print(f"loss {single['loss']:.4f}, worst gradient difference "
          f"{max(d['max_abs_diff'] for n, d in differences.items() if n.startswith('grad')):.1e}")


if __name__ == "__main__":
    main()
