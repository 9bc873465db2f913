#!/usr/bin/env python3
"""Makes tests/fixtures/perplexity/expected.json: the perplexity of text.txt in that folder, by transformers.

For each fixture model: the text and its end token, cut into windows of length + 1 tokens that overlap by one (every token
but the first is predicted exactly once), in float64. Needs torch and transformers. The file is committed, so the tests do not need them.
Usage: scripts/make_perplexity_fixture.py
"""
import json
import math
import pathlib

import torch
from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast

ROOT = pathlib.Path(__file__).resolve().parent.parent / "tests" / "fixtures"


def main():
    text = (ROOT / "perplexity" / "text.txt").read_text()
    out = {}
    for model_name, tokenizer_name, length in (("gpt2", "gpt2", 48), ("llama", "llama2", 100)):
        folder = ROOT / "tokenizers" / tokenizer_name
        eos = json.loads((folder / "tokenizer_config.json").read_text())["eos_token"]
        t = PreTrainedTokenizerFast(tokenizer_file=str(folder / "tokenizer.json"), eos_token=eos)
        ids = t(text, add_special_tokens=False)["input_ids"] + [t.eos_token_id]
        model = AutoModelForCausalLM.from_pretrained(ROOT / model_name, dtype=torch.float64).eval()
        total = 0.0
        with torch.no_grad():
            for begin in range(0, len(ids) - 1, length):
                window = torch.tensor([ids[begin : begin + length + 1]])
                logits = model(window[:, :-1]).logits[0]
                total += torch.nn.functional.cross_entropy(logits, window[0, 1:], reduction="sum").item()
        loss = total / (len(ids) - 1)
        out[model_name] = {"tokenizer": tokenizer_name, "max_length": length, "tokens": len(ids), "loss": loss,
                           "perplexity": math.exp(loss)}
    (ROOT / "perplexity" / "expected.json").write_text(json.dumps(out, indent=1) + "\n")
    print(out)


main()
