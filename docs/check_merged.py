"""Compares the logits of a merged folder with those of base and adapters, in transformers.

    python docs/check_merged.py models/base runs/chat/checkpoints/last models/merged

Needs torch, transformers and peft. Prints the largest difference of logits on a few tokens.
"""

import sys

import torch
from peft import PeftModel
from transformers import AutoModelForCausalLM


def main() -> None:
    base, adapter, merged = sys.argv[1:4]
    ids = torch.arange(3, 27).reshape(2, 12)
    with torch.no_grad():
        parts = PeftModel.from_pretrained(AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32), adapter).eval()
        whole = AutoModelForCausalLM.from_pretrained(merged, dtype=torch.float32).eval()
        a, b = parts(ids).logits, whole(ids).logits
    print(f"largest logit {a.abs().max().item():.4g}, largest difference {(a - b).abs().max().item():.2e}")


if __name__ == "__main__":
    main()
