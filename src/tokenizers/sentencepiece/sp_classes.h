// Tokenizer classes of transformers that rearrange a sentencepiece vocabulary: fairseq's offset by one,
// language codes, Pegasus' reserved ids.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "tokenizers/load/tokenizer_spec.h"

namespace redco {

// The names of these classes, separated by ", ".
std::string sp_class_names();

// Whether `name`, without "Fast", is one of them.
bool is_sp_class(std::string_view name);

// The pipeline that transformers 5 builds for class `name` from the model and tokenizer_config.json.
// ContentsError for a language code without a token.
TokenizerSpec read_sp_class(std::string_view name, const SpModel& model, const nlohmann::json& config,
                            const std::string& folder);

// Whether texts of class `name` carry the code of their language: src_lang, and tgt_lang for targets.
bool has_languages(std::string_view name);

// Replaces the post-processor of a tokenizer.json by the one with the code src_lang, if `config` has it.
void set_language(TokenizerSpec& spec, std::string_view name, const nlohmann::json& config,
                  const std::string& source);

}  // namespace redco
