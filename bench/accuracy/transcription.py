#!/usr/bin/env python3
"""Speech to text in several languages: compares redco with transformers for the same weights, batches and steps.

    PEER_PYTHON bench/accuracy/transcription.py --work /tmp/speech [--redco build/bin/redco] [--steps 20]

PEER_PYTHON has torch and transformers. Writes recordings of tones (WAV) with texts and a language per record, and trains the
tiny Whisper of tests/fixtures/whisper on them. The peer computes log-mel energies with WhisperFeatureExtractor and the loss
with WhisperForConditionalGeneration, in redco's order, with torch.optim.AdamW, the same schedule and clipping. redco runs on
several meshes with micro-batches. The largest relative difference of the losses must be below 1e-4.
"""
import argparse
import json
import os
import random
import subprocess
import wave

import numpy as np
import torch
from transformers import (WhisperFeatureExtractor, WhisperForConditionalGeneration, WhisperTokenizerFast,
                          get_linear_schedule_with_warmup)

from redco_order import batches

HERE = os.path.dirname(os.path.abspath(__file__))
WHISPER = os.path.join(HERE, "..", "..", "tests", "fixtures", "whisper")
parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--work", required=True, help="folder for recordings, checkpoints and logs")
parser.add_argument("--redco", default=os.path.join(HERE, "..", "..", "build", "bin", "redco"))
parser.add_argument("--steps", type=int, default=20)
args = parser.parse_args()
torch.set_num_threads(1)
os.makedirs(args.work, exist_ok=True)
RATE, N, BATCH, LEARNING_RATE, DECAY, SEED = 16000, 64, 16, 1e-3, 0.01, 42
WORDS = {"en": ["low", "middle", "high"], "de": ["tief", "mittel", "hoch"], "fr": ["grave", "moyen", "aigu"]}

rng, noise = random.Random(SEED), np.random.default_rng(SEED)
records, sounds = [], []
for i in range(N):
    tones, language = [rng.randrange(3) for _ in range(rng.randint(1, 3))], rng.choice(list(WORDS))
    time = np.arange(RATE // 4) / RATE
    sound = np.concatenate([np.sin(2 * np.pi * 300 * 2**tone * time) for tone in tones])
    samples = np.round(20000 * sound + noise.normal(0, 1000, len(sound))).astype("<i2")  # no bins of rounding errors alone
    with wave.open(os.path.join(args.work, f"{i}.wav"), "wb") as f:
        f.setparams((1, 2, RATE, len(samples), "NONE", ""))
        f.writeframes(samples.tobytes())
    records.append({"audio": f"{i}.wav", "text": " ".join(WORDS[language][tone] for tone in tones), "language": language})
    sounds.append(samples.astype(np.float32) / 32768)
with open(os.path.join(args.work, "train.jsonl"), "w", encoding="utf-8") as lines:
    for record in records:
        lines.write(json.dumps(record) + "\n")


def redco(name, *words):
    """-> the losses."""
    workdir = os.path.join(args.work, name)
    subprocess.run([args.redco, "train", "pipeline=transcription", f"model={{path: {WHISPER}, dropout: 0.0}}",
                    f"data.train={os.path.join(args.work, 'train.jsonl')}", f"workdir={workdir}", "checkpoint.resume=never",
                    "parallel.threads_per_rank=1", "train.schedule=linear", "train.warmup_ratio=0", "train.logging_steps=1",
                    f"train.seed={SEED}", "train.clip_grad_norm=1.0", f"train.weight_decay={DECAY}",
                    f"train.learning_rate={LEARNING_RATE}", f"train.max_steps={args.steps}", f"train.global_batch_size={BATCH}",
                    *words], check=True, env=dict(os.environ, OMP_NUM_THREADS="1"))
    with open(os.path.join(workdir, "metrics.jsonl"), encoding="utf-8") as metrics:
        return [j["loss"] for j in map(json.loads, metrics) if "loss" in j]


def peer():
    model = WhisperForConditionalGeneration.from_pretrained(WHISPER, attn_implementation="eager").eval()
    model.model.encoder.embed_positions.requires_grad_(False)  # Whisper's fixed table; from_pretrained() forgets it
    tokenizer = WhisperTokenizerFast.from_pretrained(WHISPER)
    features = WhisperFeatureExtractor.from_pretrained(WHISPER)
    decayed, others = [], []
    for name, p in model.named_parameters():
        if p.requires_grad:
            (others if name.endswith(".bias") or "norm" in name else decayed).append(p)
    optimizer = torch.optim.AdamW([{"params": decayed, "weight_decay": DECAY}, {"params": others, "weight_decay": 0.0}],
                                  lr=LEARNING_RATE, betas=(0.9, 0.999), eps=1e-8)
    schedule = get_linear_schedule_with_warmup(optimizer, 0, args.steps)
    losses = []
    for batch in batches(N, BATCH, SEED, args.steps):
        rows = []
        for i in batch:
            prefix = ["<|%s|>" % records[i]["language"], "<|transcribe|>", "<|notimestamps|>"]
            rows.append(tokenizer.convert_tokens_to_ids(prefix) + tokenizer.encode(records[i]["text"], add_special_tokens=False) +
                        [tokenizer.convert_tokens_to_ids("<|endoftext|>")])
        longest = max(map(len, rows))
        labels = torch.tensor([row + [-100] * (longest - len(row)) for row in rows])
        inputs = features([sounds[i] for i in batch], sampling_rate=RATE, return_tensors="pt").input_features
        loss = model(input_features=inputs, labels=labels).loss
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
    return losses


theirs = peer()
for name, words in {"1x1": ["train.per_device_batch_size=16"],
                    "micro-batches": ["train.per_device_batch_size=5"],
                    "2x1": ["train.per_device_batch_size=4", "parallel.n_ranks=2"],
                    "1x2": ["train.per_device_batch_size=8", "parallel.n_ranks=2", "parallel.n_model_shards=2"]}.items():
    losses = redco(name, *words)
    worst = max(abs(a - b) / abs(b) for a, b in zip(losses, theirs))
    print(f"transcription {name}: {len(losses)} steps, loss {losses[0]:.6f} to {losses[-1]:.6f}; largest relative difference "
          f"to transformers {worst:.1e}", flush=True)
    assert len(losses) == args.steps and worst < 1e-4, list(zip(losses, theirs))
