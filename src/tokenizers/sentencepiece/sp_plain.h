// Sentencepiece models of no particular tokenizer class: the pipeline that transformers builds from the
// model's own settings.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "tokenizers/load/tokenizer_spec.h"
#include "tokenizers/sentencepiece/sp_model.h"

namespace redco {

// The same ids as the sentencepiece library, apart from added tokens and the special tokens that
// add_bos_token and add_eos_token of `config`, the tokenizer_config.json, ask for.
TokenizerSpec read_sp_plain(const SpModel& model, const nlohmann::json& config, const std::string& folder);

}  // namespace redco
