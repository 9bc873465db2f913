#!/usr/bin/env python3
"""Writes what redco knows of transformers' classes.

src/models/hf_keys_table.cpp: the configuration attributes of the model classes.
src/tokenizers/load/class_tokens_table.cpp: the special tokens that tokenizer classes have by default.

Run by hand with the version of transformers that redco follows:  scripts/make_hf_keys.py
For each model_type: every attribute of its configuration class with its default, and whether the code of the
model reads it. An attribute that no code reads can't change the computation. Aliases are the other names of an
attribute (attribute_map).
"""
import importlib
import inspect
import json
import pathlib
import re
import sys

import transformers
from transformers.models.auto import configuration_auto, modeling_auto, tokenization_auto

ROOT = pathlib.Path(__file__).resolve().parent.parent
PACKAGE = pathlib.Path(transformers.__file__).parent

# Model types of text, images, and image with text.
TASKS = ["CAUSAL_LM", "MASKED_LM", "SEQ_TO_SEQ_CAUSAL_LM", "SEQUENCE_CLASSIFICATION", "IMAGE_CLASSIFICATION",
         "ZERO_SHOT_IMAGE_CLASSIFICATION", "BACKBONE", "IMAGE_TEXT_TO_TEXT", "MULTIPLE_CHOICE"]

# Code that reads the configuration of every model.
COMMON = ["modeling_rope_utils.py", "masking_utils.py", "cache_utils.py", "modeling_utils.py",
          "modeling_layers.py", "pytorch_utils.py", "loss/loss_utils.py"]

READ = [re.compile(r"\b\w*config(?:\.get_text_config\([^)]*\))?\.(\w+)"),
        re.compile(r"getattr\(\s*[\w.]*config[\w.()=]*,\s*[\"'](\w+)[\"']")]
# In configuration files: values from which others are computed, and keys of older files.
IN_CLASS = [re.compile(r"\bself\.(\w+)\b(?!\s*=[^=])"), re.compile(r"kwargs\.(?:pop|get)\(\s*[\"'](\w+)[\"']"),
            re.compile(r"getattr\(self,\s*[\"'](\w+)[\"']")]


def find_all(patterns, text):
    return {m for p in patterns for m in p.findall(text)}


# Optional attributes that masks and caches read whatever the class of the configuration.
OPTIONAL = {"sliding_window", "attention_chunk_size", "layer_types"}
COMMON_READS = set()
for name in COMMON:
    COMMON_READS |= find_all(READ, (PACKAGE / name).read_text())
# The generic part of PreTrainedConfig and of modeling_utils reads these to save and load files, to choose an
# implementation of attention, or to initialize weights.
COMMON_READS -= {"initializer_range", "init_std", "initializer_factor", "use_cache", "return_dict"}


def plain(value):
    """A default as JSON, or None if it is an object of Python."""
    try:
        return json.loads(json.dumps(value))
    except TypeError:
        return value.to_dict() if hasattr(value, "to_dict") else None


def describe(model_type, config_class):
    try:
        config = config_class()
    except Exception:  # composite configurations need their parts
        return None
    try:
        values = {k: v for k, v in config.to_dict().items()}
    except Exception:
        return None
    values.update({k: v for k, v in vars(config).items() if not k.startswith("_")})
    sub_configs = set(getattr(config_class, "sub_configs", {}) or {})
    module_file = pathlib.Path(inspect.getfile(config_class))
    reads = set(COMMON_READS)
    for path in module_file.parent.glob("modeling_*.py"):
        reads |= find_all(READ, path.read_text())
    text = module_file.read_text()
    derived = find_all(IN_CLASS, text)
    aliases = dict(getattr(config_class, "attribute_map", {}) or {})
    reads |= {key for alias, key in aliases.items() if alias in reads}
    old = set(re.findall(r"kwargs\.(?:pop|get)\(\s*[\"'](\w+)[\"']", text))
    rows = []
    for key in sorted(set(values) | old | OPTIONAL):
        if key in sub_configs or key.startswith("_") or key in BASE:
            continue
        value = plain(values.get(key)) if key in values else None
        rows.append((key, json.dumps(value, separators=(",", ":")), key in reads or key in derived))
    return rows, aliases


ROLES = ["bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"]


def class_tokens():
    defaults, of_type = {}, {}
    for model_type, names in tokenization_auto.TOKENIZER_MAPPING_NAMES.items():
        for name in names if isinstance(names, (tuple, list)) else [names]:
            tokenizer = getattr(transformers, name or "", None)
            if tokenizer is None or name in ("TokenizersBackend", "PreTrainedTokenizerFast"):
                continue
            name = name.removesuffix("Fast")
            parameters = inspect.signature(tokenizer.__init__).parameters
            values = [parameters[r].default if r in parameters else None for r in ROLES]
            tokens = [str(v) if isinstance(v, str) or type(v).__name__ == "AddedToken" else "" for v in values]
            if any(tokens):
                defaults[name] = tokens
                of_type.setdefault(model_type, name)
    quoted = lambda words: ", ".join(json.dumps(w).replace("\\u00", "\\x") for w in words)
    out = ["// Made by scripts/make_hf_keys.py; not to be edited.", "// clang-format off",
           '#include "tokenizers/load/class_tokens.h"', "", "#include <iterator>", "", "namespace redco {", "",
           "const ClassTokens kClassTokens[] = {"]
    out += [f'{{"{name}", {{{quoted(tokens)}}}}},' for name, tokens in sorted(defaults.items())
            if all(ord(c) < 128 and c.isprintable() for t in tokens for c in t)]
    out += ["};", "const std::size_t kClassTokensSize = std::size(kClassTokens);", "",
            "const TypeTokenizer kTypeTokenizers[] = {"]
    out += [f'{{"{t}", "{n}"}},' for t, n in sorted(of_type.items())]
    out += ["};", "const std::size_t kTypeTokenizersSize = std::size(kTypeTokenizers);", "",
            "}  // namespace redco", ""]
    (ROOT / "src/tokenizers/load/class_tokens_table.cpp").write_text("\n".join(out))


# Attributes of every configuration: src/models/config.cpp has a list of those without an effect.
BASE = set(transformers.PreTrainedConfig().to_dict()) | {"bos_token_id", "eos_token_id", "use_cache"}


def main():
    types = {}
    for task in TASKS:
        for name in (f"MODEL_FOR_{task}_MAPPING_NAMES", f"MODEL_FOR_{task}MAPPING_NAMES"):
            types.update(getattr(modeling_auto, name, {}))
    wanted = set(types)
    found = {}
    for model_type, class_name in configuration_auto.CONFIG_MAPPING_NAMES.items():
        config_class = getattr(transformers, class_name, None)
        if config_class is None:
            continue
        parts = {c.model_type for c in (getattr(config_class, "sub_configs", {}) or {}).values()
                 if hasattr(c, "model_type")} if model_type in wanted else set()
        wanted |= parts
    for model_type, class_name in configuration_auto.CONFIG_MAPPING_NAMES.items():
        if model_type not in wanted:
            continue
        config_class = getattr(transformers, class_name, None)
        rows = config_class and describe(model_type, config_class)
        if rows:
            found[model_type] = rows
    out = ["// Made by scripts/make_hf_keys.py; not to be edited.", "// clang-format off",
           '#include "models/hf_keys.h"', "", "#include <iterator>", "", "namespace redco {", "",
           f'const char* const kHfVersion = "{transformers.__version__}";', "",
           "// For each model_type: lines `=ALIAS KEY`, `KEY DEFAULT`, and `!KEY` if no code of the model reads",
           "// KEY.", "const HfKeyRows kHfKeyRows[] = {"]
    for model_type, (rows, aliases) in sorted(found.items()):
        lines = [f"={a} {k}" for a, k in sorted(aliases.items())]
        lines += [f"{key} {default}" if read else f"!{key}" for key, default, read in rows]
        body = "\n".join(lines)
        if len(body) > 60000:
            sys.exit(f"{model_type}: the text is too long for a string literal")
        out.append(f'{{"{model_type}", R"({body}\n)"}},')
    out += ["};", "const std::size_t kHfKeyTypes = std::size(kHfKeyRows);", "", "}  // namespace redco", ""]
    (ROOT / "src/models/hf_keys_table.cpp").write_text("\n".join(out))
    class_tokens()
    print(f"{len(found)} model types of transformers {transformers.__version__}")


if __name__ == "__main__":
    main()
