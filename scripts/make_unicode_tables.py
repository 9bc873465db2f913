#!/usr/bin/env python3
"""Writes src/unicode/tables.cpp: the properties of every code point in Hugging Face's tokenizers.

Its components use several Rust crates with tables of several Unicode versions. No system library has the same tables.
So this script tests every code point with the library:

    python scripts/make_unicode_tables.py src/unicode/tables.cpp

Needs the packages tokenizers (0.23) and sentencepiece (it compiles character maps that show the library's
borders of grapheme clusters). Takes about two minutes.
"""
import os
import sys
import tempfile
import unicodedata

import sentencepiece
import tokenizers
from sentencepiece import sentencepiece_model_pb2
from tokenizers import Regex, normalizers, pre_tokenizers

CATEGORIES = "Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No Pc Pd Ps Pe Pi Pf Po Sm Sc Sk So Zs Zl Zp Cc Cf".split()
POINTS = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]


def ranges(points):
    out = []
    for c in sorted(points):
        if out and out[-1][1] == c - 1:
            out[-1][1] = c
        else:
            out.append([c, c])
    return out


def removed(normalizer, points=POINTS):
    return {c for c in points if normalizer.normalize_str(chr(c)) == ""}


def pieces(pre_tokenizer, text):
    return [piece for piece, _ in pre_tokenizer.pre_tokenize_str(text)]


def borders(pre_tokenizer):
    """Code points that are not in one piece with the letters around them."""
    return {c for c in POINTS if len(pieces(pre_tokenizer, f"a{chr(c)}b")) != 1}


def charsmap(rules):
    """A compiled map of texts to texts."""
    with tempfile.TemporaryDirectory() as folder:
        tsv, text, model = (os.path.join(folder, n) for n in ("rules.tsv", "text.txt", "m"))
        with open(tsv, "w") as f:
            for a, b in rules:
                f.write(" ".join(f"{ord(c):X}" for c in a) + "\t" + " ".join(f"{ord(c):X}" for c in b) + "\n")
        with open(text, "w") as f:
            f.write("a b c\n" * 10)
        sentencepiece.SentencePieceTrainer.train(
            input=text, model_prefix=model, normalization_rule_tsv=tsv, vocab_size=7, model_type="bpe",
            hard_vocab_limit=False, minloglevel=3)
        proto = sentencepiece_model_pb2.ModelProto()
        with open(model + ".model", "rb") as f:
            proto.ParseFromString(f.read())
        return proto.normalizer_spec.precompiled_charsmap


def cluster_sets():
    # The library maps a whole cluster of less than 6 bytes by the shortest of its prefixes that has a rule.
    n = normalizers.Precompiled(charsmap([("a", "X")]))
    extends = {c for c in POINTS if n.normalize_str("a" + chr(c)) == "X"}
    some = [c for c in POINTS if c >= 0x300 and not 0x3400 <= c < 0x20000 - 0x5800 and c < 0xE0000]
    n = normalizers.Precompiled(charsmap([(chr(c), "X") for c in some]))
    prepends = {c for c in some if n.normalize_str(chr(c) + "a") == "X"}
    # Conjuncts of Indian scripts: a linker between two consonants keeps a third character with them.
    scripts = [c for c in some if 0x900 <= c < 0xAC00]
    n = normalizers.Precompiled(charsmap([(chr(c), "X") for c in scripts]))
    consonants = {c for c in scripts if "\u0301" in n.normalize_str(f"\u0915\u094d{chr(c)}\u0301")
                  and c not in extends and "\u0301" not in n.normalize_str(f"{chr(c)}\u0301")}
    linkers = {c for c in scripts if "\u0301" in n.normalize_str(f"\u0915{chr(c)}\u0937\u0301")} - prepends
    return extends, prepends, consonants, linkers


def scripts():
    """Runs (first, last, number of the script); code points without a script are omitted."""
    p = pre_tokenizers.UnicodeScripts()
    text = "".join(chr(c) for c in POINTS if pieces(p, chr(c)))
    known, runs = [], []
    for piece in pieces(p, text):
        for k, one in enumerate(known):
            if len(pieces(p, one + piece[0])) == 1:
                break
        else:
            k = len(known)
            known.append(piece[0])
        for first, last in ranges(ord(c) for c in piece):
            if runs and runs[-1][1] == first - 1 and runs[-1][2] == k + 1:
                runs[-1][1] = last
            else:
                runs.append([first, last, k + 1])
    runs.sort()
    return runs


def lower_runs():
    """Runs (first, last, step, lower case minus upper case)."""
    n = normalizers.Lowercase()
    runs = []
    for c in POINTS:
        low = n.normalize_str(chr(c))
        if low == chr(c) or len(low) != 1:  # only U+0130 has two characters
            assert low == chr(c) or c == 0x130
            continue
        d = ord(low) - c
        if runs and runs[-1][3] == d and c - runs[-1][1] in (1, 2) and runs[-1][2] in (0, c - runs[-1][1]):
            runs[-1][2] = c - runs[-1][1]
            runs[-1][1] = c
        else:
            runs.append([c, c, 0, d])
    return [[a, b, s or 1, d] for a, b, s, d in runs]


def normalizing():
    """Code points that the Unicode normal forms change or reorder."""
    nfkd, nfd = normalizers.NFKD(), normalizers.NFD()
    out = {c for c in POINTS if nfkd.normalize_str(chr(c)) != chr(c)}
    for c in POINTS:  # of a combining class between 1 and 240, in at least one of the orders
        if nfd.normalize_str(chr(c) + "\u0334")[0] == "\u0334" and c != 0x334:
            out.add(c)
        if nfd.normalize_str("\u0345" + chr(c))[0] != "\u0345":
            out.add(c)
    return out | {0x345}


def newer():
    """Code points that Unicode 14 lacks, by the general category that regular expressions see."""
    assert unicodedata.unidata_version == "14.0.0", "this needs the unicodedata of Python 3.11"
    points = [c for c in POINTS if unicodedata.category(chr(c)) == "Cn"]
    text = "".join(map(chr, points))

    def matching(name):
        rest = "".join(pieces(pre_tokenizers.Split(Regex(name), "removed"), text))
        return set(points) - set(map(ord, rest))

    assigned = set(points) - matching(r"\p{Cn}")
    rows, word = [], set()
    for k, name in enumerate(CATEGORIES):
        found = matching(rf"\p{{{name}}}")
        assigned -= found
        if name[0] in "LM" or name in ("Nd", "Nl", "Pc"):
            word |= found
        rows += [(a, b, k) for a, b in ranges(found)]
    assert not assigned, [hex(c) for c in sorted(assigned)][:10]
    assert word == matching(r"\w"), [hex(c) for c in sorted(word ^ matching(r"\w"))]
    han = matching(r"\p{Han}")
    assert all(any(a <= c <= b and k == CATEGORIES.index("Lo") for a, b, k in rows) for c in han if c > 0x3000)
    return sorted(rows), ranges(han)


def main():
    bert = dict(clean_text=False, handle_chinese_chars=False, strip_accents=False, lowercase=False)
    extends, prepends, consonants, linkers = cluster_sets()
    words = pre_tokenizers.Whitespace()
    sets = [
        ("numeric", borders(pre_tokenizers.Digits(individual_digits=True))),
        ("word", {c for c in POINTS if len(pieces(words, f"a{chr(c)}b")) == 1}),
        ("punctuation", borders(pre_tokenizers.Punctuation())),
        ("other", removed(normalizers.BertNormalizer(**{**bert, "clean_text": True}))),
        ("nonspacing", removed(normalizers.BertNormalizer(**{**bert, "strip_accents": True}))),
        ("mark", removed(normalizers.StripAccents())),
        ("extends", extends),
        ("prepends", prepends),
        ("consonants", consonants),
        ("linkers", linkers),
        ("normalizing", normalizing()),
    ]
    with open(sys.argv[1], "w") as f:
        def table(name, kind, rows):
            f.write(f"const {kind} kTable{name}[] = {{")
            line = "\n   "
            for row in rows:
                item = " {" + ", ".join(row) + "},"
                if len(line) + len(item) > 108:
                    f.write(line)
                    line = "\n   "
                line += item
            f.write(line + "\n};\n")
            f.write(f"const std::size_t kSize{name} = std::size(kTable{name});\n\n")

        f.write(f"""// Made by scripts/make_unicode_tables.py with tokenizers {tokenizers.__version__}; not to be edited.
#include "unicode/tables.h"

#include <iterator>

namespace redco {{
// clang-format off

""")
        for name, points in sets:
            table(name.capitalize(), "CodeRange", [(hex(a), hex(b)) for a, b in ranges(points)])
        table("Lower", "LowerRun", [(hex(a), hex(b), str(s), str(d)) for a, b, s, d in lower_runs()])
        table("Scripts", "ScriptRun", [(hex(a), hex(b), str(k)) for a, b, k in scripts()])
        rows, han = newer()
        table("Newer", "CategoryRun", [(hex(a), hex(b), f'"{CATEGORIES[k]}"') for a, b, k in rows])
        table("NewerHan", "CodeRange", [(hex(a), hex(b)) for a, b in han])
        f.write("// clang-format on\n}  // namespace redco\n")


main()
