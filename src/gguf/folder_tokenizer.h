// tokenizer.json and tokenizer_config.json from the metadata of a GGUF file (keys tokenizer.ggml.*).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gguf/header.h"

namespace redco::gguf {

struct TokenizerFiles {
  std::string tokenizer_json, tokenizer_config_json;
};

// nullopt: the file has no tokenizer. ContentsError: a kind of tokenizer or a pre-tokenizer
// (tokenizer.ggml.pre) that redco doesn't know, lists of different lengths, an id outside of the vocabulary.
std::optional<TokenizerFiles> folder_tokenizer(const Header& h);

// How llama.cpp's names of pre-tokenizers split a text. The regular expressions are those of the models'
// tokenizer.json; a GGUF file has only the name.
struct PreTokenizer {
  std::vector<std::string> splits;  // applied one after another; each match and each gap is a part
  bool ignore_merges = false;       // a part that is a token is not built by merges
  bool adds_bos = false;            // where tokenizer.ggml.add_bos_token is absent
};
// nullopt: unknown.
std::optional<PreTokenizer> pre_tokenizer(const std::string& name);

// The name of the pre-tokenizer with these splits, the best known one if several have them; "": none.
std::string pre_tokenizer_name(const std::vector<std::string>& splits, bool ignore_merges);

}  // namespace redco::gguf
