// Converts the tokens that tokenizer_config.json names to the added_tokens of a tokenizer.json.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "tokenizers/models/vocab.h"

namespace redco {

// An entry of a tokenizer.json's added_tokens; all flags but `special` are false.
nlohmann::json added_token(const std::string& content, i64 id, bool special);

// The special token `name` of `config`, which is a string or an AddedToken object there. Its id is set to 0.
// nullopt if it is missing or null; ContentsError, starting with `source`, for anything else.
std::optional<nlohmann::json> special_of(const nlohmann::json& config, const char* name,
                                         const std::string& source);

// Tokens in the order in which transformers adds them. finish() gives the next free ids to tokens that are
// not in the vocabulary, and sorts all tokens by id.
class AddedTokenList {
 public:
  void add(nlohmann::json token);  // ignored if the list has its content
  // The tokens of added_tokens_decoder, by id; then the seven special tokens. `otherwise` has the ones that
  // the config doesn't name.
  void add_from(const nlohmann::json& config, const nlohmann::json& otherwise, const std::string& source);
  nlohmann::json finish(const Vocab& vocab);
  std::vector<nlohmann::json> take() { return std::move(tokens_); }  // their ids are 0

 private:
  std::vector<nlohmann::json> tokens_;
};

}  // namespace redco
