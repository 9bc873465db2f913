// Tokenizers whose ids are neither those of the sentencepiece model nor described by a tokenizer.json:
// Marian, M2M100 (pieces looked up in vocab.json) and ByT5 (bytes).
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "tokenizers/hf_tokenizer.h"
#include "tokenizers/models/vocab.h"
#include "tokenizers/sentencepiece/sp_model.h"

namespace redco {

// The pipeline of the sentencepiece library, with its ids. `where` starts errors.
TokenizerParts sp_parts(const SpModel& model, const std::string& where);

// The classes MarianTokenizer and M2M100Tokenizer.
bool is_mapped_class(const std::string& tokenizer_class);

// vocab: {token: id} of vocab.json. language: the code for M2M100, as in src_lang; "" for the default.
// ContentsError, starting with `where`, if vocab.json lacks the unknown token, or for an unknown code.
TokenizerParts mapped_parts(const std::string& tokenizer_class, const SpModel& model, Vocab vocab,
                            const nlohmann::json& config, const std::string& language,
                            const std::string& where);

// ByT5: bytes + 3 after <pad>, </s> and <unk>; then the extra ids.
TokenizerParts byt5_parts(const nlohmann::json& config, const std::string& where);

}  // namespace redco
