#!/usr/bin/env python3
"""Text to image: compares redco with PyTorch for the same initial weights, images, captions, times and noise.

    PEER_PYTHON bench/accuracy/text_to_image.py --work /tmp/text_to_image [--steps 40]

PEER_PYTHON has torch, numpy and safetensors. The script draws images with captions. redco trains a diffusion transformer on
them and writes its initial weights (one step with the learning rate 1e-30). The peer is the same model written with
torch.nn, torch.optim.AdamW with the same clipping, batches in redco's order, and redco's random numbers computed again
(redco_random.py). The largest relative difference of the losses must be below 1e-4.
"""
import argparse
import json
import os
import random
import struct
import subprocess
import zlib

import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from torch import nn

import redco_random
from redco_order import batches

HERE = os.path.dirname(os.path.abspath(__file__))
parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--work", required=True, help="folder for the data, checkpoints and logs")
parser.add_argument("--redco", default=os.path.join(HERE, "..", "..", "build", "bin", "redco"))
parser.add_argument("--steps", type=int, default=40)
args = parser.parse_args()
torch.set_num_threads(1)
BATCH, LEARNING_RATE, DROPOUT, SEED = 16, 1e-3, 0.2, 42
SIZE, PATCH, WIDTH, HEADS, LAYERS, TEXT_LAYERS, POSITIONS, FREQUENCIES = 16, 4, 48, 4, 2, 1, 32, 64
END = 256  # of the bytes tokenizer
os.makedirs(args.work, exist_ok=True)

# --- Data: a rectangle in one of four colours, on the left or on the right ---
COLOURS = {"red": (210, 40, 40), "green": (40, 160, 60), "blue": (50, 70, 210), "yellow": (225, 195, 40)}


def png(pixels):
    def chunk(kind, body):
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
    rows = b"".join(b"\0" + bytes(v for pixel in row for v in pixel) for row in pixels)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", SIZE, SIZE, 8, 2, 0, 0, 0)) +
            chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


draw, examples = random.Random(1), []
with open(os.path.join(args.work, "captions.jsonl"), "w", encoding="utf-8") as out:
    for i in range(200):
        colour, left = draw.choice(list(COLOURS)), draw.random() < 0.5
        x, y, w, h = draw.randrange(4) + (0 if left else 8), draw.randrange(8), draw.randrange(2, 5), draw.randrange(3, 9)
        pixels = [[COLOURS[colour] if x <= c < x + w and y <= r < y + h else (245, 245, 245) for c in range(SIZE)]
                  for r in range(SIZE)]
        caption = f"{colour} on the {'left' if left else 'right'}"
        with open(os.path.join(args.work, f"{i}.png"), "wb") as file:
            file.write(png(pixels))
        out.write(json.dumps({"image": f"{i}.png", "caption": caption}) + "\n")
        examples.append((torch.tensor(pixels, dtype=torch.float32).permute(2, 0, 1) / 255 * 2 - 1,
                         list(caption.encode()) + [END]))


def redco(name, *words):
    workdir = os.path.join(args.work, name)
    subprocess.run([args.redco, "train", "pipeline=text_to_image", "model.arch=dit", "model.tokenizer=bytes",
                    f"model.image_size={SIZE}", f"model.patch_size={PATCH}", f"model.hidden_size={WIDTH}",
                    f"model.num_attention_heads={HEADS}", f"model.num_hidden_layers={LAYERS}",
                    f"model.num_text_layers={TEXT_LAYERS}", f"model.max_position_embeddings={POSITIONS}",
                    f"model.num_frequencies={FREQUENCIES}", f"diffusion.caption_dropout={DROPOUT}",
                    f"data.train={args.work}/captions.jsonl", f"workdir={workdir}", "parallel.threads_per_rank=1",
                    f"train.global_batch_size={BATCH}", "train.warmup_ratio=0", "train.schedule=constant", "train.weight_decay=0",
                    f"train.seed={SEED}", "train.clip_grad_norm=1.0", "train.logging_steps=1",
                    "checkpoint.resume=never", *words], check=True, env=dict(os.environ, OMP_NUM_THREADS="1"))
    return workdir


FOLDER = os.path.join(redco("start", "train.max_steps=1", "train.learning_rate=1e-30"), "checkpoints", "last")
OURS = redco("ours", f"train.max_steps={args.steps}", f"train.learning_rate={LEARNING_RATE}")
with open(os.path.join(OURS, "metrics.jsonl"), encoding="utf-8") as lines:
    ours = [j["loss"] for j in map(json.loads, lines) if "loss" in j]


# --- The peer's model; the names are those of the checkpoint ---
def heads(x):
    return x.unflatten(-1, (HEADS, -1)).transpose(1, 2)


def attend(q, k, v, mask):
    return F.scaled_dot_product_attention(heads(q), heads(k), heads(v), attn_mask=mask).transpose(1, 2).flatten(2)


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.proj = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x, mask=None):
        return self.proj(attend(*self.qkv(x).chunk(3, -1), mask))


class CrossAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.q_linear, self.kv_linear, self.proj = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x, memory, mask):
        return self.proj(attend(self.q_linear(x), *self.kv_linear(memory).chunk(2, -1), mask))


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        return self.fc2(F.gelu(self.fc1(x), approximate="tanh"))


class TextBlock(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.attn, self.norm2, self.mlp = nn.LayerNorm(WIDTH, 1e-6), Attention(), nn.LayerNorm(WIDTH, 1e-6), Mlp()

    def forward(self, x, mask):
        x = x + self.attn(self.norm1(x), mask)
        return x + self.mlp(self.norm2(x))


def modulate(x, shift, scale):
    return F.layer_norm(x, (WIDTH,), eps=1e-6) * (1 + scale) + shift


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale_shift_table = nn.Parameter(torch.zeros(6, WIDTH))
        self.attn, self.cross_attn, self.mlp = Attention(), CrossAttention(), Mlp()

    def forward(self, x, time, memory, mask):
        shift, scale, gate, mlp_shift, mlp_scale, mlp_gate = (time + self.scale_shift_table).chunk(6, 1)
        x = x + gate * self.attn(modulate(x, shift, scale))
        x = x + self.cross_attn(x, memory, mask)
        return x + mlp_gate * self.mlp(modulate(x, mlp_shift, mlp_scale))


class Text(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.positions = nn.Embedding(END + 1, WIDTH), nn.Embedding(POSITIONS, WIDTH)
        self.start, self.norm = nn.Parameter(torch.zeros(1, 1, WIDTH)), nn.LayerNorm(WIDTH, 1e-6)
        self.blocks = nn.ModuleList(TextBlock() for _ in range(TEXT_LAYERS))

    def forward(self, ids, mask):
        x = self.embed(ids) + self.positions.weight[:ids.shape[1]]
        x = torch.cat([self.start.expand(len(ids), 1, -1), x], 1)
        for block in self.blocks:
            x = block(x, mask)
        return self.norm(x)


def grid_places(side, width):
    """Sines and cosines of the row, then of the column, of each patch."""
    frequencies = 10000.0 ** (-torch.arange(width // 4, dtype=torch.float64) / (width // 4))
    rows, columns = torch.meshgrid(torch.arange(side), torch.arange(side), indexing="ij")
    angles = [x.reshape(-1, 1) * frequencies for x in (rows, columns)]
    return torch.cat([f(a) for a in angles for f in (torch.sin, torch.cos)], 1).float()[None]


class FinalLayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale_shift_table, self.linear = nn.Parameter(torch.zeros(2, WIDTH)), nn.Linear(WIDTH, 3 * PATCH * PATCH)


class DiT(nn.Module):
    def __init__(self):
        super().__init__()
        self.text = Text()
        self.x_embedder = nn.ModuleDict({"proj": nn.Conv2d(3, WIDTH, PATCH, PATCH)})
        self.places = grid_places(SIZE // PATCH, WIDTH)
        self.t_embedder = nn.ModuleDict({"mlp": nn.Sequential(nn.Linear(2 * FREQUENCIES, WIDTH), nn.SiLU(), nn.Linear(WIDTH, WIDTH))})
        self.t_block = nn.Sequential(nn.SiLU(), nn.Linear(WIDTH, 6 * WIDTH))
        self.blocks, self.final_layer = nn.ModuleList(Block() for _ in range(LAYERS)), FinalLayer()

    def forward(self, noisy, time, ids, mask):
        mask = torch.cat([torch.ones(len(ids), 1, dtype=torch.bool), mask], 1)[:, None, None]
        memory = self.text(ids, mask)
        x = self.x_embedder["proj"](noisy).flatten(2).transpose(1, 2) + self.places
        angles = 1000 * time * torch.exp(-torch.log(torch.tensor(10000.0)) * torch.arange(FREQUENCIES) / FREQUENCIES)
        t = self.t_embedder["mlp"](torch.cat([angles.cos(), angles.sin()], 1)) + memory[:, 0]
        for block in self.blocks:
            x = block(x, self.t_block(t).unflatten(1, (6, WIDTH)), memory, mask)
        shift, scale = (t[:, None] + self.final_layer.scale_shift_table).chunk(2, 1)
        y = self.final_layer.linear(modulate(x, shift, scale))
        n = SIZE // PATCH
        return y.unflatten(2, (3, PATCH, PATCH)).unflatten(1, (n, n)).permute(0, 3, 1, 4, 2, 5).reshape(-1, 3, SIZE, SIZE)


model = DiT()
model.load_state_dict(load_file(os.path.join(FOLDER, "model.safetensors")))
optimizer = torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0)
theirs = []
for step, batch in enumerate(batches(len(examples), BATCH, SEED, args.steps)):
    rows = [examples[i] for i in batch]
    length = max(len(ids) for _, ids in rows)
    ids = torch.tensor([ids + [0] * (length - len(ids)) for _, ids in rows])
    mask = torch.tensor([[k < len(ids) for k in range(length)] for _, ids in rows])
    image = torch.stack([pixels for pixels, _ in rows])
    time, shown = (torch.from_numpy(redco_random.uniform(redco_random.key(SEED, step, site), (len(rows), 1)))
                   for site in ("time", "caption"))
    noise = torch.from_numpy(redco_random.normal(redco_random.key(SEED, step, "noise"), tuple(image.shape)))
    velocity = noise - image
    found = model(image + time[..., None, None] * velocity, time, ids, mask & (shown >= DROPOUT))
    loss = F.mse_loss(found, velocity)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    theirs.append(loss.item())
worst = max(abs(a - b) / abs(b) for a, b in zip(ours, theirs))
print(f"{len(ours)} steps, loss {ours[0]:.6f} to {ours[-1]:.6f}; largest relative difference to PyTorch {worst:.1e}")
assert len(ours) == args.steps and worst < 1e-4, list(zip(ours, theirs))
