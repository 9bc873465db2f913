// The `model` of a tokenizer.json.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "tokenizers/load/tokenizer_spec.h"
#include "tokenizers/models/model.h"

namespace redco {

// A BPE, Unigram, WordPiece or WordLevel out of the model's fields and the lists in `spec`, which are moved
// out of it; byte_level: the pre-tokenizer ends in ByteLevel. Files of old leave the type out: it is then the
// one that has the fields there. ContentsError, with `where` in front, for anything else.
std::unique_ptr<TokenModel> make_model(const nlohmann::json& value, const std::string& where,
                                       TokenizerSpec& spec, bool byte_level);

}  // namespace redco
