#!/usr/bin/env python3
"""Makes small tokenizers of every kind, with the results of Hugging Face's library on unusual texts.

    python scripts/make_tokenizer_fixtures.py tests/fixtures/tokenizers/parts
    python scripts/make_tokenizer_fixtures.py /tmp/parts --texts 3000 --seed 7     # more texts

Writes one file per tokenizer: {"tokenizer": its tokenizer.json, "cases": [{text, ids, tokens, decoded,
decoded_skip}]}; without tokens if they are those of the vocabulary, and without the other fields if they are empty. Needs the package tokenizers (0.23).

Single components are tested with a Unigram model without tokens. Then every piece is one unknown token whose text is
the piece.
"""
import argparse
import base64
import json
import os
import random

from tokenizers import (AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers,
                        processors, trainers)

WORDS = ("the of and license work Copyright don't I'm you've shan't naïve café résumé Ελληνικά Σίσυφος "
         "русский текст שלום עולם مرحبا بالعالم 中文字符 日本語 カタカナ ひらがな 한국어 ไทยภาษา हिन्दी தமிழ் "
         "ﬁ ﬂ ½ ² ℌ Å ǆ İI ıi ß ẞ ﷺ 𝒳 𝟘 Ⅷ ① １２３ 12 345 6789 3.14 x_y a-b e.g. http://x.y/?z=1 "
         "😀 👩‍👩‍👧 🇩🇪 ❤️ e\u0301 o\u0308\u0323 a\u0300\u0301 \u1100\u1161\u11a8 가\u11a8 क्षि ©\u200d").split(" ")
ODD = [" ", "  ", "   ", "\t", "\n", "\r\n", "\r", "\u00a0", "\u3000", "\u200b", "\u200d", "\u200e", "\u2028", "\u0085",
       "\x00", "\x01", "\x0b", "\x7f", "\u00ad", "\ufeff", "\ufffd", "\u2581", "\u2581\u2581", "_", ".", ",", "!", "?",
       "'", "\"", "-", "--", "…", "、", "。", "¿", "¡", "$", "+", "<", "=", "|", "~", "\u0300", "\u064b", "\u0903", "\u0e31",
       "\u20dd", "\u309a", "\ue000", "\U000f0000", "\U0010fffd", "\u0378", "<s>", "</s>", "<unk>", "<mask>",
       "[CLS]", "[MASK]", "<0x41>", "##", "</w>", "Ġ", "Ċ"]


def random_texts(n, seed):
    r = random.Random(seed)
    texts = ["", " ", "a", "Hello world", "  two  spaces  ", "The end.\n", "\u2581x", "x" * 60, "\u4e2d" * 20, " " * 20]
    while len(texts) < n:
        parts = []
        for _ in range(r.choice((1, 2, 3, 5, 8))):
            kind = r.random()
            if kind < 0.45:
                w = r.choice(WORDS)
                w = w.upper() if r.random() < 0.1 else w.capitalize() if r.random() < 0.1 else w
                parts.append(w)
            elif kind < 0.8:
                parts.append(r.choice(ODD))
            elif kind < 0.9:
                parts.append(r.choice(ODD + WORDS) * r.choice((2, 3, 7)))
            else:
                low, high = r.choice(((0x20, 0x7f), (0x80, 0x250), (0x250, 0x1000), (0x1000, 0x3400), (0xa000, 0xac00),
                                      (0xf900, 0x10000), (0x10000, 0x12000), (0x1d000, 0x1fb00)))
                parts.append("".join(chr(r.randrange(low, high)) for _ in range(r.choice((1, 2, 4)))))
            if r.random() < 0.5:
                parts.append(" ")
        texts.append("".join(parts))
    return texts[:n]


CORPUS = [" ".join(random.Random(k).choice(WORDS) for _ in range(12)) + "." for k in range(300)]


def bare(normalizer=None, pre_tokenizer=None, added=(), decoder=None):
    t = Tokenizer(models.Unigram([("<unk>", 0.0)], unk_id=0))
    if normalizer is not None:
        t.normalizer = normalizer
    if pre_tokenizer is not None:
        t.pre_tokenizer = pre_tokenizer
    if decoder is not None:
        t.decoder = decoder
    t.add_tokens(list(added))
    return t


def charsmap(nmt_nfkc):
    with open(nmt_nfkc) as f:
        return base64.b64decode(json.load(f)["normalizer"]["precompiled_charsmap"])


def parts(root):
    n, p = normalizers, pre_tokenizers
    for name in ("NFC", "NFD", "NFKC", "NFKD", "Lowercase", "StripAccents", "Nmt", "ByteLevel"):
        yield f"normalizer-{name.lower()}", bare(getattr(n, name)())
    yield "normalizer-strip", bare(n.Strip(left=True, right=True))
    yield "normalizer-strip-left", bare(n.Strip(left=True, right=False))
    yield "normalizer-accents", bare(n.Sequence([n.NFKD(), n.StripAccents(), n.Lowercase()]))
    yield "normalizer-replace", bare(n.Sequence([n.Replace("a", "<>"), n.Replace(Regex(r"\s+"), "_"), n.Prepend("^")]))
    for bits in range(16):
        if bits in (0, 5, 10, 12, 15):
            yield f"normalizer-bert-{bits}", bare(n.BertNormalizer(
                clean_text=bool(bits & 1), handle_chinese_chars=bool(bits & 2),
                strip_accents=bool(bits & 4), lowercase=bool(bits & 8)))
    yield "normalizer-bert-none", bare(n.BertNormalizer(strip_accents=None, lowercase=True))
    for name in ("Whitespace", "WhitespaceSplit", "BertPreTokenizer", "UnicodeScripts"):
        yield f"pre-{name.lower()}", bare(None, getattr(p, name)())
    for individual in (False, True):
        yield f"pre-digits-{individual}", bare(None, p.Digits(individual_digits=individual))
    for behavior in ("removed", "isolated", "merged_with_previous", "merged_with_next", "contiguous"):
        yield f"pre-punctuation-{behavior}", bare(None, p.Punctuation(behavior))
        yield f"pre-split-{behavior}", bare(None, p.Split(Regex(r"\p{Lu}|\s|(?=\d)"), behavior))
        yield f"pre-split-invert-{behavior}", bare(None, p.Split(Regex(r"[a-z]+|\p{M}"), behavior, invert=True))
    yield "pre-split-string", bare(None, p.Split("e", "merged_with_next"))
    yield "pre-delimiter", bare(None, p.CharDelimiterSplit("e"))
    yield "pre-fixed", bare(None, p.FixedLength(length=3))
    yield "pre-byte-level", bare(None, p.ByteLevel(add_prefix_space=True))
    yield "pre-byte-level-no-regex", bare(None, p.ByteLevel(add_prefix_space=False, use_regex=False))
    flags = [AddedToken("<mask>", lstrip=True, normalized=False, special=True),
             AddedToken("<s>", normalized=False, special=True), AddedToken("</s>", rstrip=True, normalized=True),
             AddedToken("Work", single_word=True, normalized=True), AddedToken("café", normalized=True),
             AddedToken(" ", normalized=False), AddedToken("the of", normalized=True, lstrip=True, rstrip=True),
             AddedToken("中", single_word=True, normalized=False)]
    for scheme in ("always", "first", "never"):
        for split in (False, True):
            t = bare(None, p.Metaspace(prepend_scheme=scheme, split=split), flags[:2],
                     decoders.Metaspace(prepend_scheme=scheme))
            yield f"pre-metaspace-{scheme}-{split}", t
    yield "pre-sequence", bare(None, p.Sequence([p.WhitespaceSplit(), p.Punctuation("isolated"), p.Digits(True),
                                                 p.Metaspace(prepend_scheme="first")]))
    yield "pre-sequence-first", bare(n.Sequence([n.Nmt(), n.Strip(), n.Replace("th", "x")]),
                                     p.Sequence([p.Split(Regex("x|e"), "isolated"), p.Metaspace(prepend_scheme="first")]))
    yield "added", bare(None, None, flags)
    yield "added-lower", bare(n.Sequence([n.Lowercase(), n.StripAccents(), n.Replace(" ", "\u2581")]), None, flags)
    yield "added-bert", bare(n.BertNormalizer(), p.BertPreTokenizer(), flags)
    yield "added-prepend", bare(n.Sequence([n.Prepend("\u2581"), n.Replace(" ", "\u2581")]), None, flags)
    if root:
        yield "precompiled", bare(n.Precompiled(charsmap(root)))
        yield "precompiled-sequence", bare(n.Sequence([n.Precompiled(charsmap(root)), n.Replace(Regex(" {2,}"), " ")]),
                                           p.Metaspace(), flags[:2])


def trained():
    n, p, d = normalizers, pre_tokenizers, decoders

    def train(t, trainer):
        t.train_from_iterator(CORPUS, trainer)
        return t

    t = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True))
    t.pre_tokenizer = p.Whitespace()
    yield "bpe-fuse-unk", train(t, trainers.BpeTrainer(vocab_size=120, limit_alphabet=30, special_tokens=["<unk>", "<s>"],
                                                       show_progress=False))
    t = Tokenizer(models.BPE(unk_token="<unk>", end_of_word_suffix="</w>"))
    t.normalizer, t.pre_tokenizer = n.Lowercase(), p.BertPreTokenizer()
    t.decoder = d.BPEDecoder(suffix="</w>")
    yield "bpe-suffix", train(t, trainers.BpeTrainer(vocab_size=150, limit_alphabet=40, special_tokens=["<unk>"],
                                                     end_of_word_suffix="</w>", show_progress=False))
    t = Tokenizer(models.BPE(unk_token="<unk>", continuing_subword_prefix="##"))
    t.pre_tokenizer = p.Whitespace()
    t.decoder = d.WordPiece()
    yield "bpe-prefix", train(t, trainers.BpeTrainer(vocab_size=200, limit_alphabet=60, special_tokens=["<unk>"],
                                                     continuing_subword_prefix="##", show_progress=False))
    t = Tokenizer(models.BPE())  # no unk: unknown characters vanish
    t.pre_tokenizer = p.WhitespaceSplit()
    yield "bpe-no-unk", train(t, trainers.BpeTrainer(vocab_size=100, limit_alphabet=25, show_progress=False))
    # Byte fallback without some of the bytes, after Metaspace, as in Llama and Gemma
    t = Tokenizer(models.BPE(unk_token="<unk>"))
    t.pre_tokenizer = p.Metaspace()
    train(t, trainers.BpeTrainer(vocab_size=150, limit_alphabet=50, show_progress=False,
                                 special_tokens=["<unk>", "<s>"] + [f"<0x{b:02X}>" for b in range(0xE8)]))
    for fuse, ignore in ((True, False), (False, True)):
        j = json.loads(t.to_str())
        j["model"].update(byte_fallback=True, fuse_unk=fuse, ignore_merges=ignore)
        j["added_tokens"] = j["added_tokens"][:2]
        u = Tokenizer.from_str(json.dumps(j))
        u.pre_tokenizer = p.Metaspace(prepend_scheme="first", split=ignore)
        u.decoder = d.Sequence([d.Replace("\u2581", " "), d.ByteFallback(), d.Fuse(), d.Strip(" ", 1, 0)])
        u.post_processor = processors.Sequence([processors.ByteLevel(), processors.TemplateProcessing(
            single="<s> $A", pair="<s> $A <s>:1 $B:1", special_tokens=[("<s>", 1)])])
        yield f"bpe-fallback-{fuse}", u
    t = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    t.normalizer, t.pre_tokenizer, t.decoder = n.BertNormalizer(lowercase=False), p.BertPreTokenizer(), d.WordPiece()
    train(t, trainers.WordPieceTrainer(vocab_size=160, limit_alphabet=60, show_progress=False,
                                       special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]))
    t.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    yield "word-piece-cased", t
    t = Tokenizer(models.WordPiece({"[UNK]": 0, "a": 1, "##b": 2, "b": 3, "##a": 4, "##": 5, "#": 6, "x": 7, "##x": 8,
                                    "xx": 9, "\u4e2d": 10, "##\u4e2d": 11}, unk_token="[UNK]", max_input_chars_per_word=50))
    t.pre_tokenizer = p.WhitespaceSplit()
    yield "word-piece-short", t
    t = Tokenizer(models.WordLevel(unk_token="<unk>"))
    t.pre_tokenizer = p.Whitespace()
    yield "word-level", train(t, trainers.WordLevelTrainer(vocab_size=60, special_tokens=["<unk>"], show_progress=False))
    t = Tokenizer(models.Unigram())
    t.pre_tokenizer, t.decoder = p.Metaspace(), d.Metaspace()
    train(t, trainers.UnigramTrainer(vocab_size=200, special_tokens=["<unk>", "<s>"], unk_token="<unk>", show_progress=False))
    yield "unigram", t
    j = json.loads(t.to_str())
    vocab = [["<unk>", 0.0]] + [[f"<0x{b:02X}>", -20.0] for b in range(256)] + [e for e in j["model"]["vocab"] if len(e[0]) < 3][2:90]
    j["model"].update(vocab=vocab + [["ab", -1.0], ["ab", -9.0], ["", -1.0], ["q<unk>", -3.0], ["ΩΩ", -900.0]], byte_fallback=True)
    j["added_tokens"] = []
    j["decoder"] = {"type": "Sequence", "decoders": [{"type": "ByteFallback"}, {"type": "Metaspace", "replacement": "\u2581"}]}
    j["pre_tokenizer"] = {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "always", "split": False}
    yield "unigram-fallback", Tokenizer.from_str(json.dumps(j))
    j["model"].update(byte_fallback=False, vocab=vocab[:1] + vocab[257:] + [["ΩΩ", -900.0], ["==", -1.0], ["=", -0.5]])
    yield "unigram-ties", Tokenizer.from_str(json.dumps(j))
    t = Tokenizer(models.WordLevel({"<pad>": 0, "|": 1, "a": 2, "e": 3, "t": 4, "h": 5, "<unk>": 6, ".": 7, "'": 8, "s": 9},
                                   unk_token="<unk>"))
    t.pre_tokenizer, t.decoder = p.Split("", "isolated"), d.CTC()
    t.normalizer = n.Replace(" ", "|")
    yield "ctc", t


def main():
    a = argparse.ArgumentParser()
    a.add_argument("folder")
    a.add_argument("--texts", type=int, default=12)
    a.add_argument("--seed", type=int, default=1)
    a.add_argument("--t5", default=os.path.join(os.path.dirname(__file__), "../tests/fixtures/tokenizers/t5/tokenizer.json"),
                   help="a tokenizer.json with nmt_nfkc's character map; it is omitted from the output")
    o = a.parse_args()
    os.makedirs(o.folder, exist_ok=True)
    for k, (name, t) in enumerate([*parts(o.t5), *trained()]):
        cases = []
        # Each tokenizer gets other texts, except for the first ten.
        texts = random_texts(10, 0) + random_texts(o.texts, o.seed * 1000 + k)[10:]
        texts += ["ab q<unk>z ΩΩ q<unk>", "====== = ==", "the of <mask>  Work</s>  café work CAFÉ The Of x", "aab bab xx ##b #"]
        for text in texts:
            e = t.encode(text)
            cases.append({"text": text, "ids": e.ids, "tokens": e.tokens, "decoded": t.decode(e.ids, skip_special_tokens=False),
                          "decoded_skip": t.decode(e.ids)})
        j = json.loads(t.to_str())
        text = json.dumps(j, ensure_ascii=True, separators=(",", ":"))
        if j["normalizer"] and "recompiled" in json.dumps(j["normalizer"]):
            text = text.replace(json.dumps(base64.b64encode(charsmap(o.t5)).decode()), '"@t5"')
        for n, c in enumerate(cases):  # redundant fields are omitted
            if c["decoded_skip"] == c["decoded"]:
                del c["decoded_skip"]
            if c["tokens"] == [t.id_to_token(i) for i in c["ids"]]:
                del c["tokens"]
            if t.decoder is None and n % 8:
                c.pop("decoded_skip", None)
                del c["decoded"]
        with open(os.path.join(o.folder, name + ".json"), "w") as f:
            f.write('{"tokenizer":' + text + ',"cases":[\n')
            f.write(",\n".join(json.dumps(c, separators=(",", ":")) for c in cases))
            f.write("\n]}\n")


if __name__ == "__main__":
    main()
