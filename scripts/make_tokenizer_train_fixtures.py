#!/usr/bin/env python3
"""Makes tests/fixtures/tokenizer-train: small texts, and the tokenizers that Hugging Face's trainers make of them.

Needs tokenizers. The files are committed, so the tests do not need them. Usage: scripts/make_tokenizer_train_fixtures.py
"""
import json
import pathlib
import random

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "tests" / "fixtures" / "tokenizer-train"

LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
          r"|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")

SYLLABLES = "ba be bi bo bu ka ke ki ko ku la le li lo lu ma me mi mo mu sta tre schö ñu über é da do".split()
ODD = ["日本語", "日本", "こんにちは", "Привет", "мир", "🙂", "🙂🙂", "don't", "we'll", "I'VE", "1995", "3,141", "a_b_c", "x==y",
       "    return x", "\tif", "…", "“quoted”", "aaaa", "aaaaaaaa", "http://a.b/c?d=e", "\u00a0", "  ", "\r"]


def words(seed, lines):
    """Lines of made-up words with Zipf's frequencies; few syllables, so that many counts are equal."""
    r = random.Random(1)
    lexicon = ["".join(r.choices(SYLLABLES, k=r.choice([1, 2, 2, 3, 4]))) for _ in range(160)]
    r.seed(seed)
    weights = [1 / (k + 1) for k in range(len(lexicon))]
    out = []
    for _ in range(lines):
        line = r.choices(lexicon, weights, k=r.randrange(3, 14))
        for _ in range(r.choice([0, 0, 1, 2])):
            line.insert(r.randrange(len(line) + 1), r.choice(ODD))
        if r.random() < 0.4:
            line[0] = line[0].capitalize()
        out.append(" ".join(line) + r.choice([".", "", "!", " ,", "?\n", "..."]))
    return "\n".join(out) + r.choice(["", "\n"])


def ties(seed):
    """Few letters: nearly all counts are equal, and a token can be merged in several ways."""
    r = random.Random(seed)
    return "".join(r.choice("aaabc \n") for _ in range(1500))


def byte_level(split):
    if split == "gpt2":
        return pre_tokenizers.ByteLevel(add_prefix_space=False)
    pattern = pre_tokenizers.Split(Regex(LLAMA3 if split == "llama3" else QWEN), "isolated")
    return pre_tokenizers.Sequence([pattern, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


def bpe(files, vocab_size, min_frequency, special, split):
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = byte_level(split)
    t.train([str(FOLDER / f) for f in files],
            trainers.BpeTrainer(vocab_size=vocab_size, min_frequency=min_frequency, special_tokens=special,
                                initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
    model = json.loads(t.to_str())["model"]
    tokens = sorted(model["vocab"], key=model["vocab"].get)
    return {"files": files, "vocab_size": vocab_size, "min_frequency": min_frequency, "special": special,
            "split": split, "tokens": tokens[len(special) + 256:], "merges": [" ".join(m) for m in model["merges"]],
            "ids": t.encode((FOLDER / "fresh.txt").read_bytes().decode()).ids}


def unigram(files, vocab_size):
    """The number of tokens with Hugging Face's Unigram of that size."""
    t = Tokenizer(models.Unigram())
    t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(r"\n+"), "isolated"),
                                               pre_tokenizers.Metaspace(prepend_scheme="never")])
    t.train([str(FOLDER / f) for f in files],
            trainers.UnigramTrainer(vocab_size=vocab_size, special_tokens=["<unk>", "<|endoftext|>"],
                                    unk_token="<unk>", show_progress=False))
    count = lambda name: len(t.encode((FOLDER / name).read_bytes().decode()).ids)
    return {"files": files, "vocab_size": vocab_size, "n_tokens": count(files[0]), "n_tokens_fresh": count("fresh.txt")}


def main():
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, text in {"words.txt": words(1, 220), "ties.txt": ties(2), "fresh.txt": words(3, 25)}.items():
        (FOLDER / name).write_bytes(text.encode())
    end = ["<|endoftext|>"]
    cases = [bpe(["words.txt"], 400, 2, end, "gpt2"),
             bpe(["words.txt", "ties.txt"], 700, 3, ["<s>", "</s>", "<pad>"], "llama3"),
             bpe(["words.txt"], 500, 1, end, "qwen"),
             bpe(["ties.txt"], 1000, 1, end, "gpt2"),
             bpe(["ties.txt"], 300, 5, [], "gpt2")]
    with open(FOLDER / "expected.jsonl", "w") as out:  # one case per line
        for case in [*cases, unigram(["words.txt"], 300)]:
            out.write(json.dumps(case, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
