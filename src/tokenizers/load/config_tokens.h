// Tokens that tokenizer_config.json names, as the added_tokens of a tokenizer.json.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "tokenizers/models/vocab.h"

namespace redco {

// One entry of a tokenizer.json's added_tokens; no flag but `special`.
nlohmann::json added_token(const std::string& content, i64 id, bool special);

// The special token that `config` names so: a string, or an AddedToken object. Its id is 0. Nothing where it
// is missing or null; ContentsError, with `source` in front, for anything else.
std::optional<nlohmann::json> special_of(const nlohmann::json& config, const char* name,
                                         const std::string& source);

// Tokens in the order in which transformers adds them. finish() gives those that the vocabulary lacks the
// next ids, and sorts all of them by id.
class AddedTokenList {
 public:
  void add(nlohmann::json token);  // the first of one content counts
  // The tokens of added_tokens_decoder, by id; then the seven with a role, `otherwise` in place of those that
  // the config doesn't name.
  void add_from(const nlohmann::json& config, const nlohmann::json& otherwise, const std::string& source);
  nlohmann::json finish(const Vocab& vocab);

 private:
  std::vector<nlohmann::json> tokens_;
};

}  // namespace redco
