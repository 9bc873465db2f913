// The special and added tokens of a tokenizer's folder, from all the files that transformers reads.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "tokenizers/load/tokenizer_spec.h"
#include "tokenizers/tokenizer.h"

namespace redco {

// The tokenizer_class of `config`, the tokenizer_config.json, else of config.json, else the class of its
// model_type; without "Fast". "" if there is none.
std::string tokenizer_class_of(const nlohmann::json& config, const std::string& folder);

// Adds the special tokens (bos_token, ...) that `config`, the tokenizer_config.json, doesn't mention: those
// of special_tokens_map.json, else of the tokenizer class (tokenizer_class, or the model_type of
// config.json). Class defaults are left out if `spec` doesn't have them. As in transformers,
// special_tokens_map.json wins over a config without added_tokens_decoder. A null in `config` means that
// the token does not exist.
void complete_roles(nlohmann::json& config, const std::string& folder, const TokenizerSpec& spec);

// Adds to the added_tokens of a tokenizer.json those that only the folder's other files name: the special
// tokens and added_tokens_decoder, additional_special_tokens and extra_special_tokens of `config`, and
// added_tokens.json. Tokens that are not in the vocabulary get the next free ids, as in transformers.
void add_named_tokens(TokenizerSpec& spec, const nlohmann::json& config, const std::string& folder);

// The ids of bos, eos and pad in generation_config.json and config.json, for those that `config` doesn't
// mention.
SpecialIds model_config_ids(const nlohmann::json& config, const std::string& folder);

}  // namespace redco
