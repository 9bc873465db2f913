#!/usr/bin/env python3
"""Makes tests/fixtures/seq2seq with transformers: what its tokenizers make of sources and targets that are cut to a
length, as its examples run_translation.py and run_summarization.py do, and losses of pairs of unequal lengths, with
and without label smoothing (LabelSmoother).

    pip install torch transformers && scripts/make_seq2seq_fixtures.py
"""
import json
from pathlib import Path

import torch
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer
from transformers.trainer_pt_utils import LabelSmoother

FIXTURES = Path(__file__).resolve().parent.parent / "tests/fixtures"
OUT = FIXTURES / "seq2seq"
PAIRS = [
    ("A man in a blue shirt.", "Ein Mann in einem blauen Hemd."),
    ("Two young, White males are outside near many bushes.", "Zwei junge weiße Männer sind im Freien."),
    ("x", "y"),
    ("  spaces   inside ", "tab\tand 12,345.67 "),
    ("The quick brown fox jumps over the lazy dog. " * 4, "Der schnelle braune Fuchs. " * 4),
]
ROWS = [([7, 8, 9, 10, 11, 3], [20, 21, 22, 1]), ([5, 4], [30, 31, 32, 33, 34, 35, 1]), ([12, 13, 14, 15], [40, 1])]


def pairs():
    for name in ["t5", "roberta"]:
        tokenizer = AutoTokenizer.from_pretrained(FIXTURES / "tokenizers" / name)
        for prefix in ["", "translate English to German: "]:
            for most_source, most_target in [(512, 128), (8, 5)]:
                for source, target in PAIRS:
                    yield {
                        "tokenizer": name, "prefix": prefix, "max_source_length": most_source,
                        "max_target_length": most_target, "source": source, "target": target,
                        "source_ids": tokenizer(prefix + source, max_length=most_source, truncation=True)["input_ids"],
                        "labels": tokenizer(text_target=target, max_length=most_target, truncation=True)["input_ids"],
                    }


def padded(rows, fill):
    n = max(map(len, rows))
    return torch.tensor([r + [fill] * (n - len(r)) for r in rows])


def losses():
    for name in ["t5", "bart"]:
        model = AutoModelForSeq2SeqLM.from_pretrained(FIXTURES / name, dtype=torch.float64).eval()
        sources = [s for s, _ in ROWS]
        labels = padded([t for _, t in ROWS], -100)
        out = model(input_ids=padded(sources, model.config.pad_token_id),
                    attention_mask=padded([[1] * len(s) for s in sources], 0), labels=labels)
        yield {"model": name, "rows": ROWS, "loss": out.loss.item(),
               "smoothed": LabelSmoother(epsilon=0.1)(out, labels).item()}


OUT.mkdir(exist_ok=True)
for name, lines in [("pairs", pairs()), ("losses", losses())]:
    (OUT / f"{name}.jsonl").write_text("".join(json.dumps(x, ensure_ascii=False) + "\n" for x in lines))
