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
    "plain-unigram": ("unigram", "tokenizer.model", {"tokenizer_config.json": {}}),
}
BERTS = {
    "bert": {},
    "bert-cased": {"do_lower_case": False, "tokenize_chinese_chars": False},
    "bert-accents": {"do_lower_case": True, "strip_accents": False, "tokenizer_class": "BertTokenizer"},
}


def with_transformers(folder, texts):
    t = AutoTokenizer.from_pretrained(folder)
    cases = []
    for text in texts:
        ids = t.encode(text)
        cases.append({"text": text, "ids": ids, "decoded": t._tokenizer.decode(ids, skip_special_tokens=False)})
    return cases, {"eos": t.eos_token_id, "bos": t.bos_token_id, "unk": t.unk_token_id}


def main():
    a = argparse.ArgumentParser()
    a.add_argument("folder")
    a.add_argument("--texts", type=int, default=11)
    a.add_argument("--seed", type=int, default=1)
    o = a.parse_args()
    os.makedirs(o.folder, exist_ok=True)
    with open(os.path.join(here, "../tests/fixtures/tokenizers/t5/tokenizer.json")) as f:
        import base64
        nmt_nfkc = base64.b64decode(json.load(f)["normalizer"]["precompiled_charsmap"])

    def texts(k):
        out = parts.random_texts(o.texts, o.seed * 1000 + k)
        extra = ["<ctl> <x>work license  x", "e.g. <sep><s></s>", "work license</s> <extra_id_0> x <|im_start|>\u2581a"]
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
            cases, special = with_transformers(folder, texts(100 + k))
            proto = sentencepiece_model_pb2.ModelProto()
            with open(os.path.join(o.folder, model + ".model"), "rb") as f:
                proto.ParseFromString(f.read())
            charsmap = bool(sentencepiece_model_pb2.ModelProto.FromString(protos[model]).normalizer_spec.precompiled_charsmap)
            write(name, {"model": model, "file": file, "charsmap": charsmap, "files": files, "special": special, "cases": cases})
        with open(os.path.join(here, "../tests/fixtures/tokenizers/bert/tokenizer.json")) as f:
            vocab = json.load(f)["model"]["vocab"]
        lines = "".join(t + "\n" for t in sorted(vocab, key=vocab.get))
        for k, (name, config) in enumerate(BERTS.items()):
            folder = os.path.join(temp, "folder-" + name)
            os.makedirs(folder)
            files = {"vocab.txt": lines, "tokenizer_config.json": config, "config.json": {"model_type": "bert"}}
            for n, contents in files.items():
                with open(os.path.join(folder, n), "w") as f:
                    f.write(contents if isinstance(contents, str) else json.dumps(contents))
            cases, special = with_transformers(folder, texts(200 + k))
            write(name, {"files": files, "special": special, "cases": cases})


if __name__ == "__main__":
    main()
