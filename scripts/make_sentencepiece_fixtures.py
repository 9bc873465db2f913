#!/usr/bin/env python3
"""Makes small sentencepiece models and folders without a tokenizer.json, with the libraries' results on unusual texts.

    python scripts/make_sentencepiece_fixtures.py tests/fixtures/tokenizers/sentencepiece
    python scripts/make_sentencepiece_fixtures.py /tmp/sp --texts 3000 --seed 7     # more texts

NAME.model does not contain the character map of its normalizer if that is nmt_nfkc. The test takes this map from the
t5 fixture. NAME.json: {"model", "file": its name in the folder, "charsmap": whether it has the
map, "cases": [{text, ids, tokens, decoded}]} by sentencepiece's library. With "files", by
transformers' AutoTokenizer for a folder with these files. Needs sentencepiece, transformers and tokenizers.
"""
import argparse
import base64
import importlib.util
import json
import os
import tempfile

os.environ["TRANSFORMERS_VERBOSITY"] = "error"

import sentencepiece  # noqa: E402
from sentencepiece import sentencepiece_model_pb2  # noqa: E402
from transformers import AutoTokenizer  # noqa: E402

here = os.path.dirname(os.path.abspath(__file__))
spec = importlib.util.spec_from_file_location("parts", os.path.join(here, "make_tokenizer_fixtures.py"))
parts = importlib.util.module_from_spec(spec)
spec.loader.exec_module(parts)

MODELS = {
    "unigram": dict(model_type="unigram", vocab_size=200),
    "unigram-bytes": dict(model_type="unigram", vocab_size=420, byte_fallback=True, character_coverage=0.98,
                          normalization_rule_name="identity", remove_extra_whitespaces=False,
                          user_defined_symbols=["<x>", "work license", "  "]),
    "unigram-suffix": dict(model_type="unigram", vocab_size=160, treat_whitespace_as_suffix=True,
                           normalization_rule_name="identity"),
    "bpe": dict(model_type="bpe", vocab_size=200, user_defined_symbols=["<sep>", "e.g"]),
    "bpe-bytes": dict(model_type="bpe", vocab_size=430, byte_fallback=True, character_coverage=0.98,
                      normalization_rule_name="identity", remove_extra_whitespaces=False, split_digits=True,
                      allow_whitespace_only_pieces=True),
    "bpe-bare": dict(model_type="bpe", vocab_size=180, add_dummy_prefix=False, pad_id=3,
                     control_symbols=["<ctl>"], normalization_rule_name="identity"),
    "t5": dict(model_type="unigram", vocab_size=200, pad_id=0, eos_id=1, unk_id=2, bos_id=-1),
    "deberta": dict(model_type="unigram", vocab_size=180, pad_id=0, bos_id=1, eos_id=2, unk_id=3, pad_piece="[PAD]",
                    bos_piece="[CLS]", eos_piece="[SEP]", unk_piece="[UNK]"),
    "albert": dict(model_type="unigram", vocab_size=200, pad_id=0, unk_id=1, bos_id=-1, eos_id=-1,
                   control_symbols=["[CLS]", "[SEP]", "[MASK]"], user_defined_symbols=["(", ")", "-"]),
}

LLAMA = {"tokenizer_class": "LlamaTokenizer", "bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}
FOLDERS = {
    "llama": ("bpe-bytes", "tokenizer.model", {"tokenizer_config.json": {**LLAMA, "add_bos_token": True, "legacy": True}}),
    "llama-new": ("bpe-bytes", "tokenizer.model",
                  {"tokenizer_config.json": {**LLAMA, "add_bos_token": True, "add_eos_token": True, "legacy": False,
                                             "pad_token": "<pad>", "added_tokens_decoder": {
                                                 "430": {"content": "<|im_start|>", "special": True, "lstrip": False,
                                                         "rstrip": False, "normalized": False, "single_word": False}}}}),
    "llama-no-prefix": ("bpe", "tokenizer.model", {"tokenizer_config.json": {**LLAMA, "add_prefix_space": False}}),
    "t5-folder": ("t5", "spiece.model", {"tokenizer_config.json": {"tokenizer_class": "T5Tokenizer", "extra_ids": 10}}),
    "t5-type": ("t5", "spiece.model", {"config.json": {"model_type": "t5"}}),
    "mistral": ("bpe-bytes", "tokenizer.model",
                {"tokenizer_config.json": {**LLAMA, "add_bos_token": True}, "config.json": {"model_type": "mistral"}}),
    "llama-older": ("bpe-bytes", "tokenizer.model",
                    {"tokenizer_config.json": {"tokenizer_class": "LlamaTokenizer"},
                     "special_tokens_map.json": {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>",
                                                 "pad_token": "<|im_start|>"},
                     "added_tokens.json": {"e.g": 431, "<|im_start|>": 430}}),
    "xlm-roberta": ("unigram", "sentencepiece.bpe.model",
                    {"tokenizer_config.json": {"tokenizer_class": "XLMRobertaTokenizer"}}),
    "xlm-roberta-type": ("unigram", "sentencepiece.bpe.model", {"config.json": {"model_type": "xlm-roberta"}}),
    "camembert": ("unigram", "sentencepiece.bpe.model", {"config.json": {"model_type": "camembert"}}),
    "albert": ("albert", "spiece.model", {"config.json": {"model_type": "albert"}}),
    "albert-accents": ("albert", "spiece.model", {"tokenizer_config.json": {
        "tokenizer_class": "AlbertTokenizer", "do_lower_case": False, "keep_accents": True}}),
    "mbart": ("unigram", "sentencepiece.bpe.model", {"config.json": {"model_type": "mbart"}}),
    "mbart-lang": ("unigram", "sentencepiece.bpe.model", {"tokenizer_config.json": {
        "tokenizer_class": "MBartTokenizer", "src_lang": "ro_RO", "tgt_lang": "en_XX"}}),
    "mbart50": ("unigram", "sentencepiece.bpe.model", {"tokenizer_config.json": {
        "tokenizer_class": "MBart50Tokenizer", "src_lang": "fr_XX"}}),
    "nllb": ("bpe", "sentencepiece.bpe.model", {"tokenizer_config.json": {
        "tokenizer_class": "NllbTokenizer", "tgt_lang": "fra_Latn",
        "extra_special_tokens": ["eng_Latn", "fra_Latn"]}}),
    "nllb-older": ("bpe-bytes", "sentencepiece.bpe.model", {"tokenizer_config.json": {
        "tokenizer_class": "NllbTokenizer", "legacy_behaviour": True, "src_lang": "fra_Latn",
        "additional_special_tokens": ["fra_Latn", "eng_Latn"]}}),
    "pegasus": ("t5", "spiece.model", {"config.json": {"model_type": "pegasus"}}),
    "pegasus-offset": ("t5", "spiece.model", {"tokenizer_config.json": {
        "tokenizer_class": "PegasusTokenizer", "offset": 10, "mask_token": "<mask_2>", "mask_token_sent": "<mask_1>"}}),
    "deberta-v2": ("deberta", "spm.model", {"config.json": {"model_type": "deberta-v2"}}),
    "deberta-v2-lower": ("deberta", "spm.model", {"tokenizer_config.json": {
        "tokenizer_class": "DebertaV2Tokenizer", "do_lower_case": True, "split_by_punct": True}}),
    "plain-bpe": ("bpe", "tokenizer.model", {"tokenizer_config.json": {"legacy": False, "pad_token": "<pad>"}}),
    "plain-bytes": ("unigram-bytes", "tokenizer.model", {"tokenizer_config.json": {"add_eos_token": True}}),
    "plain-bare": ("bpe-bare", "tokenizer.model", {"tokenizer_config.json": {"added_tokens_decoder": {
        "180": {"content": "<|im_start|>", "special": True, "lstrip": False, "rstrip": False, "normalized": True,
                "single_word": False},
        "5": {"content": "<renamed>", "special": False, "lstrip": False, "rstrip": False, "normalized": False,
                "single_word": False}}}}),
    "plain-unigram": ("unigram", "tokenizer.model", {"tokenizer_config.json": {}}),
}
# Classes with a vocab.json, and ByT5. The value of vocab.json is filled in below.
PIECES = {
    "marian": ({"source.spm": "unigram", "target.spm": "t5"}, {"config.json": {"model_type": "marian"}}),
    "marian-class": ({"source.spm": "t5", "target.spm": "unigram"}, {"tokenizer_config.json": {
        "tokenizer_class": "MarianTokenizer", "source_lang": "en", "target_lang": "fr"}}),
    "m2m100": ({"sentencepiece.bpe.model": "unigram"}, {"config.json": {"model_type": "m2m_100"}}),
    "m2m100-lang": ({"sentencepiece.bpe.model": "unigram"}, {"tokenizer_config.json": {
        "tokenizer_class": "M2M100Tokenizer", "src_lang": "fr", "tgt_lang": "de"}}),
    "byt5": ({}, {"tokenizer_config.json": {"tokenizer_class": "ByT5Tokenizer"}}),
    "byt5-class": ({}, {"tokenizer_config.json": {"tokenizer_class": "ByT5Tokenizer", "extra_ids": 3}}),
}
BPES = {
    "clip": {"config.json": {"model_type": "clip"}},
    "clip-class": {"tokenizer_config.json": {"tokenizer_class": "CLIPTokenizer", "unk_token": "<|endoftext|>"}},
    "whisper": {"tokenizer_config.json": {"tokenizer_class": "WhisperTokenizer", "language": "en", "task": "transcribe"},
                "added_tokens.json": {}},
    "whisper-plain": {"config.json": {"model_type": "whisper"}, "added_tokens.json": {}},
    "roberta-type": {"config.json": {"model_type": "roberta"}},
}
WHISPER = ["<|startoftranscript|>", "<|en|>", "<|translate|>", "<|transcribe|>", "<|notimestamps|>"]
BERTS = {
    "bert": {},
    "bert-cased": {"do_lower_case": False, "tokenize_chinese_chars": False},
    "bert-accents": {"do_lower_case": True, "strip_accents": False, "tokenizer_class": "BertTokenizer"},
}


def with_transformers(folder, texts, targets=False):
    t = AutoTokenizer.from_pretrained(folder)
    cases = []
    for text in texts:
        ids = t.encode(text)
        backend = getattr(t, "_tokenizer", t)
        cases.append({"text": text, "ids": ids, "decoded": backend.decode(ids, skip_special_tokens=False)})
        if targets:
            cases[-1]["target"] = t(text_target=text)["input_ids"]
    return cases, {"eos": t.eos_token_id, "bos": t.bos_token_id, "unk": t.unk_token_id}


LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|"
          r"\s*[\r\n]+|\s+(?!\S)|\s+")


def byte_ranks(gpt2, merges):
    """The bytes, then the merged tokens of GPT-2's vocabulary as bytes, in the order of the merges."""
    from transformers.convert_slow_tokenizer import bytes_to_unicode
    of = {c: b for b, c in bytes_to_unicode().items()}
    return [bytes([b]) for b in range(256)] + list(dict.fromkeys(
        bytes(of[c] for c in m.replace(" ", "", 1)) for m in merges))


def main():
    a = argparse.ArgumentParser()
    a.add_argument("folder")
    a.add_argument("--texts", type=int, default=11)
    a.add_argument("--seed", type=int, default=1)
    o = a.parse_args()
    os.makedirs(o.folder, exist_ok=True)
    with open(os.path.join(here, "../tests/fixtures/tokenizers/t5/tokenizer.json")) as f:
        nmt_nfkc = base64.b64decode(json.load(f)["normalizer"]["precompiled_charsmap"])

    def texts(k):
        out = parts.random_texts(o.texts, o.seed * 1000 + k)
        extra = ["<ctl> <x>work license  x", "e.g. <sep><s></s>", "work license</s> <extra_id_0> x <|im_start|>\u2581a",
                 ">>fra<< Bonjour the work", ">>fr the __fr__ works</s>", "It's <|endoftext|>  DON'T 1234 caf\u00e9!!\n</s>",
                 "a <mask> b<mask_1>  <mask_2> <unk_5> (`` \u00c9cole'' en_XX<pad>1,5 x, eng_Latn [MASK]y"]
        return [t for t in out + extra if t.encode("utf-8", "ignore").decode() == t and "\x00" not in t]

    def write(name, value):
        with open(os.path.join(o.folder, name + ".json"), "w") as f:
            cases = value.pop("cases")
            f.write(json.dumps(value, separators=(",", ":"))[:-1] + ',"cases":[\n')
            f.write(",\n".join(json.dumps(c, separators=(",", ":")) for c in cases) + "\n]}\n")

    protos = {}
    with tempfile.TemporaryDirectory() as temp:
        corpus = os.path.join(temp, "corpus.txt")
        with open(corpus, "w") as f:
            f.write("\n".join(parts.CORPUS))
        for k, (name, options) in enumerate(MODELS.items()):
            sentencepiece.SentencePieceTrainer.train(
                input=corpus, model_prefix=os.path.join(temp, name), hard_vocab_limit=False, minloglevel=3,
                num_threads=1, **options)
            proto = sentencepiece_model_pb2.ModelProto()
            with open(os.path.join(temp, name + ".model"), "rb") as f:
                proto.ParseFromString(f.read())
            if name == "bpe":  # pieces that are merged first and must not remain
                for p in [p for p in proto.pieces if p.type == 1 and len(p.piece) == 2][:12]:
                    p.type = 5
            if name == "unigram":
                for p in [p for p in proto.pieces if p.type == 1 and len(p.piece) > 2][:8]:
                    p.type = 5
            charsmap = bool(proto.normalizer_spec.precompiled_charsmap)
            if charsmap:
                proto.normalizer_spec.precompiled_charsmap = nmt_nfkc
            protos[name] = proto.SerializeToString()
            sp = sentencepiece.SentencePieceProcessor(model_proto=protos[name])
            cases = [{"text": t, "ids": sp.encode(t), "tokens": sp.encode(t, out_type=str), "decoded": sp.decode(sp.encode(t))}
                     for t in texts(k)]
            if charsmap:
                proto.normalizer_spec.ClearField("precompiled_charsmap")
            proto.trainer_spec.ClearField("input")
            proto.trainer_spec.ClearField("model_prefix")
            with open(os.path.join(o.folder, name + ".model"), "wb") as f:
                f.write(proto.SerializeToString())
            write(name, {"model": name, "file": name + ".model", "charsmap": charsmap, "cases": cases})
        for k, (name, (model, file, files)) in enumerate(FOLDERS.items()):
            folder = os.path.join(temp, "folder-" + name)
            os.makedirs(folder)
            for n, contents in files.items():
                with open(os.path.join(folder, n), "w") as f:
                    json.dump(contents, f)
            with open(os.path.join(folder, file), "wb") as f:
                f.write(protos[model])
            cases, special = with_transformers(folder, texts(100 + k), "tgt_lang" in str(files))
            proto = sentencepiece_model_pb2.ModelProto()
            with open(os.path.join(o.folder, model + ".model"), "rb") as f:
                proto.ParseFromString(f.read())
            charsmap = bool(sentencepiece_model_pb2.ModelProto.FromString(protos[model]).normalizer_spec.precompiled_charsmap)
            write(name, {"model": model, "file": file, "charsmap": charsmap, "files": files, "special": special, "cases": cases})

        def in_folder(name, files, k, targets=False, models={}):
            folder = os.path.join(temp, "folder-" + name)
            os.makedirs(folder)
            for n, contents in files.items():
                with open(os.path.join(folder, n), "w") as f:
                    f.write(contents if isinstance(contents, str) else json.dumps(contents))
            for n, model in models.items():
                with open(os.path.join(folder, n), "wb") as f:
                    f.write(protos[model])
            cases, special = with_transformers(folder, texts(k), targets)
            write(name, {**({"models": models} if models else {}), "files": files, "special": special, "cases": cases})

        for k, (name, (models, files)) in enumerate(PIECES.items()):
            files = dict(files)
            if models:
                pieces = {}
                for m in models.values():
                    for p in sentencepiece_model_pb2.ModelProto.FromString(protos[m]).pieces:
                        pieces[p.piece] = 0
                marian = "target.spm" in models
                first = ["</s>", "<unk>"] if marian else ["<s>", "<pad>", "</s>", "<unk>"]
                rest = [t for t in sorted(pieces) if t not in first + ["<pad>"]][:-7]  # some are unknown
                words = first + ([">>fra<<"] if marian else []) + rest + (["<pad>"] if marian else [])
                files["vocab.json"] = {t: i for i, t in enumerate(words)}
            in_folder(name, files, 300 + k, "target" in str(models) or "tgt_lang" in str(files), models)
        with open(os.path.join(here, "../tests/fixtures/tokenizers/gpt2/tokenizer.json")) as f:
            gpt2 = json.load(f)["model"]
        merges = [m if isinstance(m, str) else " ".join(m) for m in gpt2["merges"]]
        for k, (name, files) in enumerate(BPES.items()):
            files = dict(files)
            tokens = [t for t in sorted(gpt2["vocab"], key=gpt2["vocab"].get) if t != "<|endoftext|>"]
            lines = merges
            if name.startswith("clip"):
                letters = [t for t in tokens if len(t) == 1]
                lines = [m.replace(" \u0120", " ") for m in merges if "\u0120" not in m][:150]
                lines = [x for m in lines for x in (m, m + "</w>")]
                tokens = letters + [t + "</w>" for t in letters] + [m.replace(" ", "") for m in lines]
                lines = ["#version: 0.2"] + lines
                have = set(letters) | {t + "</w>" for t in letters}
                kept = []
                for m in lines[1:]:
                    a, b = m.split(" ")
                    if a in have and b in have:
                        have.add(a + b)
                        kept.append(m)
                lines = lines[:1] + kept
                tokens = letters + [t + "</w>" for t in letters] + [m.replace(" ", "") for m in kept]
                tokens = list(dict.fromkeys(tokens)) + ["<|startoftext|>", "<|endoftext|>"]
            elif name.startswith("roberta"):
                tokens = ["<s>", "<pad>", "</s>", "<unk>"] + tokens + ["<mask>"]
            else:
                tokens.append("<|endoftext|>")
                files["added_tokens.json"] = {t: len(tokens) + i for i, t in enumerate(WHISPER)}
            files["vocab.json"] = {t: i for i, t in enumerate(tokens)}
            files["merges.txt"] = "\n".join(lines) + "\n"
            in_folder(name, files, 400 + k)
        ranks = byte_ranks(gpt2, merges)
        in_folder("tiktoken", {
            "tokenizer.model": "".join(f"{base64.b64encode(t).decode()} {i}\n" for i, t in enumerate(ranks)),
            "tokenizer_config.json": {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "<|eot|>",
                                      "added_tokens_decoder": {
                str(len(ranks) + 1): {"content": "<|eot|>", "special": True, "lstrip": False, "rstrip": False,
                                      "normalized": False, "single_word": False}}}}, 500)
        in_folder("tekken", {
            "tekken.json": {
                "config": {"pattern": LLAMA3, "num_vocab_tokens": len(ranks), "default_vocab_size": len(ranks) + 6,
                           "default_num_special_tokens": 10, "version": "v3"},
                "vocab": [{"rank": i, "token_bytes": base64.b64encode(t).decode(), "token_str": None}
                          for i, t in enumerate(ranks)],
                "special_tokens": [{"rank": i, "token_str": t, "is_control": True}
                                   for i, t in enumerate(["<unk>", "<s>", "</s>"])]},
            "config.json": {"model_type": "mistral"},
            "tokenizer_config.json": {"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": "<s>",
                                      "eos_token": "</s>"}}, 501)
        with open(os.path.join(here, "../tests/fixtures/tokenizers/bert/tokenizer.json")) as f:
            vocab = json.load(f)["model"]["vocab"]
        lines = "".join(t + "\n" for t in sorted(vocab, key=vocab.get))
        for k, (name, config) in enumerate(BERTS.items()):
            in_folder(name, {"vocab.txt": lines, "tokenizer_config.json": config, "config.json": {"model_type": "bert"}},
                      200 + k)


if __name__ == "__main__":
    main()
