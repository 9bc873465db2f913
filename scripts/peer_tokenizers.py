#!/usr/bin/env python3
"""Compares redco's token ids with the ids that llama.cpp's tests expect.

    peer_tokenizers.py REDCO FOLDER     (scripts/peer-tests calls it)

FOLDER has ggml-vocab-NAME.gguf with texts (.inp) and expected ids (.out), without special tokens.
"""
import glob
import json
import os
import subprocess
import sys
import tempfile

SEPARATOR = "\n__ggml_vocab_test__\n"


def main():
    redco, folder = sys.argv[1:3]
    failed = 0
    for path in sorted(glob.glob(os.path.join(folder, "ggml-vocab-*.gguf"))):
        name = os.path.basename(path)[len("ggml-vocab-") : -len(".gguf")]
        if not os.path.exists(path + ".out"):
            print(f"{name:16} no expected ids")
            continue
        texts = open(path + ".inp", encoding="utf8", newline="").read().split(SEPARATOR)
        lines = open(path + ".out").read().split("\n")[: len(texts)]
        expected = [[int(x) for x in line.split()] for line in lines]
        with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as f:
            f.writelines(json.dumps({"text": t}) + "\n" for t in texts)
            f.flush()
            command = [redco, "tokenizer", "encode", path, "--input", f.name, "--no-special"]
            r = subprocess.run(command, capture_output=True, encoding="utf8", errors="replace")
        if r.returncode:
            failed += 1
            print(f"{name:16} FAILED: {r.stderr.strip().splitlines()[-1][:200]}")
            continue
        ids = [json.loads(line)["ids"] for line in r.stdout.splitlines()]
        bad = [i for i, (a, b) in enumerate(zip(ids, expected)) if a != b]
        failed += len(bad) > 0
        print(f"{name:16} {len(texts) - len(bad)} of {len(texts)} texts equal")
        for i in bad[:3]:
            print(f"    {texts[i]!r:.60} {ids[i][:16]}, expected {expected[i][:16]}")
    sys.exit(1 if failed else 0)


main()
