#!/usr/bin/env python3
"""Makes tests/fixtures/{mlp-mixer,performer,mlp}: tiny checkpoints with the results of PyTorch.

transformers has none of these families. They are implemented here from their papers in PyTorch: MLP-Mixer
(Tolstikhin et al. 2021, names as timm's), Performer (Choromanski et al. 2021: positive random features, FAVOR+) and an
MLP on feature vectors. Needs torch. The files are committed, so the tests do not need it. Usage:
scripts/make_encoder_fixtures.py [NAME...]
"""
import json
import math
import pathlib
import sys

import torch
import torch.nn as nn
import torch.nn.functional as F
from safetensors.torch import save_file

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "tests" / "fixtures"


class Mlp(nn.Module):
    def __init__(self, width, inner):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(width, inner), nn.Linear(inner, width)

    def forward(self, x):
        return self.fc2(F.gelu(self.fc1(x)))


class MixerBlock(nn.Module):
    def __init__(self, c, patches):
        super().__init__()
        self.norm1 = nn.LayerNorm(c["hidden_size"], eps=c["layer_norm_eps"])
        self.mlp_tokens = Mlp(patches, c["tokens_mlp_dim"])
        self.norm2 = nn.LayerNorm(c["hidden_size"], eps=c["layer_norm_eps"])
        self.mlp_channels = Mlp(c["hidden_size"], c["channels_mlp_dim"])

    def forward(self, x):
        x = x + self.mlp_tokens(self.norm1(x).mT).mT
        return x + self.mlp_channels(self.norm2(x))


class Mixer(nn.Module):
    def __init__(self, c):
        super().__init__()
        height, width = c["image_size"]
        patches = (height // c["patch_size"]) * (width // c["patch_size"])
        self.stem = nn.Module()
        self.stem.proj = nn.Conv2d(c["num_channels"], c["hidden_size"], c["patch_size"], c["patch_size"])
        self.blocks = nn.ModuleList(MixerBlock(c, patches) for _ in range(c["num_hidden_layers"]))
        self.norm = nn.LayerNorm(c["hidden_size"], eps=c["layer_norm_eps"])
        self.head = nn.Linear(c["hidden_size"], c["num_labels"])

    def forward(self, pixel_values):
        x = self.stem.proj(pixel_values).flatten(2).mT
        hidden = [x]
        for block in self.blocks:
            x = block(x)
            hidden.append(x)
        hidden[-1] = self.norm(x)
        return self.head(hidden[-1].mean(1)), hidden


def phi(x, features, keys, epsilon):
    """exp(w x - |x|^2 / 2), with the largest exponent subtracted: per query, or over all keys."""
    y = torch.einsum("bhsd,md->bhsm", x, features) - (x * x).sum(-1, keepdim=True) / 2
    largest = y.amax(dim=(-1, -2) if keys else -1, keepdim=True).detach()
    return torch.exp(y - largest) + epsilon


class PerformerAttention(nn.Module):
    def __init__(self, c):
        super().__init__()
        width, self.heads, self.epsilon = c["hidden_size"], c["num_attention_heads"], c["kernel_epsilon"]
        self.norm = nn.LayerNorm(width, eps=c["layer_norm_eps"])
        self.query, self.key, self.value, self.output = (nn.Linear(width, width) for _ in range(4))
        self.register_buffer("random_features", torch.zeros(c["num_random_features"] * (width // self.heads)))

    def forward(self, x, mask):
        B, S, C = x.shape
        y = self.norm(x)
        split = lambda layer: layer(y).view(B, S, self.heads, -1).transpose(1, 2)
        D = C // self.heads
        w = self.random_features.view(-1, D)
        q = phi(split(self.query) * D**-0.25, w, False, self.epsilon)
        k = phi(split(self.key) * D**-0.25, w, True, self.epsilon) * mask[:, None, :, None]
        # The full matrix here; redco first sums over keys. The results are equal.
        weights = q @ k.mT
        out = (weights / weights.sum(-1, keepdim=True)) @ split(self.value)
        return self.output(out.transpose(1, 2).reshape(B, S, C))


class NormedMlp(Mlp):
    def __init__(self, width, inner, eps):
        super().__init__(width, inner)
        self.norm = nn.LayerNorm(width, eps=eps)

    def forward(self, x):
        return super().forward(self.norm(x))


class Performer(nn.Module):
    def __init__(self, c):
        super().__init__()
        width = c["hidden_size"]
        p = self.performer = nn.Module()
        p.embeddings = nn.Module()
        p.embeddings.word_embeddings = nn.Embedding(c["vocab_size"], width, padding_idx=c["pad_token_id"])
        p.embeddings.position_embeddings = nn.Embedding(c["max_position_embeddings"], width)
        p.encoder = nn.Module()
        p.encoder.layer = nn.ModuleList()
        for _ in range(c["num_hidden_layers"]):
            layer = nn.Module()
            layer.attention = PerformerAttention(c)
            layer.mlp = NormedMlp(width, c["intermediate_size"], c["layer_norm_eps"])
            p.encoder.layer.append(layer)
        p.norm = nn.LayerNorm(width, eps=c["layer_norm_eps"])
        self.classifier = nn.Linear(width, c["num_labels"])

    def forward(self, input_ids, attention_mask):
        p = self.performer
        mask = attention_mask.to(self.classifier.weight.dtype)
        positions = torch.arange(input_ids.shape[1])
        x = p.embeddings.word_embeddings(input_ids) + p.embeddings.position_embeddings(positions)
        hidden = [x]
        for layer in p.encoder.layer:
            x = x + layer.attention(x, mask)
            x = x + layer.mlp(x)
            hidden.append(x)
        hidden[-1] = p.norm(x)
        pooled = (hidden[-1] * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)
        return self.classifier(pooled), hidden


class Network(nn.Module):
    def __init__(self, c):
        super().__init__()
        widths = [c["input_size"], *c["hidden_sizes"], c["num_labels"]]
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in zip(widths, widths[1:]))

    def forward(self, features):
        x = features
        for layer in self.layers[:-1]:
            x = torch.tanh(layer(x))
        return self.layers[-1](x), []


def mixer_inputs(c, g):
    pixels = torch.randn(5, c["num_channels"], *c["image_size"], generator=g)
    return {"pixel_values": pixels}, torch.randint(0, c["num_labels"], (5,), generator=g)


def performer_inputs(c, g):
    ids = torch.randint(0, c["vocab_size"], (4, 14), generator=g)
    mask = torch.ones_like(ids)
    mask[1, 9:] = mask[2, 3] = 0
    ids[1, 9:] = c["pad_token_id"]
    return {"input_ids": ids, "attention_mask": mask}, torch.randint(0, c["num_labels"], (4,), generator=g)


def vector_inputs(c, g):
    return ({"features": torch.randn(6, c["input_size"], generator=g)},
            torch.randn(6, c["num_labels"], generator=g))


FIXTURES = {
    "mlp-mixer": (Mixer, mixer_inputs, "image-classification",
                  dict(model_type="mlp-mixer", architectures=["MlpMixerForImageClassification"], image_size=[16, 24],
                       patch_size=4, num_channels=3, hidden_size=20, num_hidden_layers=2, tokens_mlp_dim=14,
                       channels_mlp_dim=34, hidden_act="gelu", layer_norm_eps=1e-6, num_labels=5)),
    "performer": (Performer, performer_inputs, "sequence-classification",
                  dict(model_type="performer", architectures=["PerformerForSequenceClassification"], vocab_size=53,
                       max_position_embeddings=16, hidden_size=24, num_hidden_layers=2, num_attention_heads=3,
                       intermediate_size=38, num_random_features=21, kernel_epsilon=1e-4, hidden_act="gelu",
                       layer_norm_eps=1e-12, pad_token_id=5, num_labels=4)),
    "mlp": (Network, vector_inputs, "vector-regression",
            dict(model_type="mlp", architectures=["MlpModel"], input_size=7, hidden_sizes=[13, 10], hidden_act="tanh",
                 problem_type="regression", num_labels=2)),
}


def loss_of(logits, labels):
    if labels.is_floating_point():
        return F.mse_loss(logits, labels.to(logits.dtype))
    return F.cross_entropy(logits, labels)


def compute(model, inputs, labels):
    """Hidden states, logits, loss, gradients; three steps of AdamW and the losses on the way."""
    model.zero_grad()
    logits, hidden = model(**inputs)
    loss = loss_of(logits, labels)
    loss.backward()
    out = {f"hidden.{i}": h for i, h in enumerate(hidden)} | {"logits": logits, "loss": loss}
    out |= {f"grad.{n}": p.grad.clone() for n, p in model.named_parameters()}
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01)
    for step in range(4):
        optimizer.zero_grad()
        loss = loss_of(model(**inputs)[0], labels)
        out[f"loss_step{step + 1}" if step < 3 else "loss_after3"] = loss
        if step < 3:
            loss.backward()
            optimizer.step()
    out |= {f"adamw.{n}": p for n, p in model.named_parameters()}
    return {n: t.detach().clone().contiguous() for n, t in out.items()}


def make(name):
    kind, make_inputs, task, config = FIXTURES[name]
    g = torch.Generator().manual_seed(sum(map(ord, name)))
    model = kind(config)
    with torch.no_grad():  # no parameter keeps a special initial value
        for n, p in sorted(model.named_parameters()):
            x = torch.randn(p.shape, generator=g)
            fan_in = p.shape[1:].numel()
            p.copy_(x * (0.6 if "embeddings" in n else 1.3 / math.sqrt(fan_in)) if p.dim() > 1
                    else x * 0.2 + (0.0 if n.endswith("bias") else 1.0))
        for n, b in sorted(model.named_buffers()):
            b.copy_(torch.randn(b.shape, generator=g))
    inputs, labels = make_inputs(config, g)
    folder = FOLDER / name
    folder.mkdir(exist_ok=True)
    state = {n: t.clone().contiguous() for n, t in model.state_dict().items()}
    save_file(state, folder / "model.safetensors", metadata={"format": "pt"})
    single = compute(model, inputs, labels)
    model.load_state_dict(state)
    doubled = {n: t.double() if t.is_floating_point() else t for n, t in inputs.items()}
    double = compute(model.double(), doubled, labels)
    differences = {n: {"max_abs_diff": (single[n].double() - double[n]).abs().max().item(),
                       "max_abs": double[n].abs().max().item()} for n in single}
    buckets = {"g>=1e-3": 0.0, "1e-5<=g<1e-3": 0.0}
    for n, p in single.items():
        if n.startswith("adamw."):
            first = double["grad." + n[6:]].abs()
            apart = (p.double() - double[n]).abs()
            for bucket, chosen in (("g>=1e-3", first >= 1e-3), ("1e-5<=g<1e-3", (first >= 1e-5) & (first < 1e-3))):
                if chosen.any():
                    buckets[bucket] = max(buckets[bucket], apart[chosen].max().item())
    save_file(inputs | {"labels": labels} | single, folder / "expected.safetensors")
    write = lambda file, value: (folder / file).write_text(json.dumps(value, indent=1) + "\n")
    write("config.json", config)
    write("tolerances.json", {"float32_vs_float64": differences,
                              "adamw_by_first_gradient": {n: {"max_abs_diff": d} for n, d in buckets.items()}})
    write("fixture.json", {"name": name, "family": config["model_type"], "task": task, "tokenizer": None,
                           "optimizer": {"name": "AdamW", "lr": 1e-3, "betas": [0.9, 0.999], "eps": 1e-8,
                                         "weight_decay": 0.01, "steps": 3, "clip": None}})
    worst = max(d["max_abs_diff"] for n, d in differences.items() if n.startswith("grad"))
    size = sum(f.stat().st_size for f in folder.iterdir())
    print(f"{name}: {size // 1024} KiB, loss {single['loss']:.4f}, worst gradient difference {worst:.1e}")


if __name__ == "__main__":
    for name in sys.argv[1:] or FIXTURES:
        make(name)
