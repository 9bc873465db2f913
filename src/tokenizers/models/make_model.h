// The `model` of a tokenizer.json.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "tokenizers/load/tokenizer_spec.h"
#include "tokenizers/models/model.h"

namespace redco {

// Makes a BPE, Unigram, WordPiece or WordLevel model from the fields of `value` and the lists in `spec`,
// which are moved. byte_level: the last pre-tokenizer is ByteLevel. Old files have no type; the fields then
// decide. ContentsError, starting with `where`, for anything else.
std::unique_ptr<TokenModel> make_model(const nlohmann::json& value, const std::string& where,
                                       TokenizerSpec& spec, bool byte_level);

}  // namespace redco
