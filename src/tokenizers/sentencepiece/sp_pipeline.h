// Parts of tokenizer.json pipelines that the conversions of sentencepiece models and vocab.txt share.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tokenizers/models/bpe.h"
#include "tokenizers/models/vocab.h"
#include "tokenizers/sentencepiece/sp_model.h"

namespace redco {

inline constexpr const char* kSpaceMark = "\xE2\x96\x81";  // U+2581

nlohmann::json metaspace(const char* scheme, bool split);
nlohmann::json replace(const char* from, const char* to);
nlohmann::json precompiled(const SpModel& model);  // REQUIRES: the model has a charsmap

// Parts of a template: sequence "A" or "B", and a special token, which is an entry of added_tokens.
nlohmann::json sequence_part(const char* name, int type);
nlohmann::json special_part(const nlohmann::json& token, int type);

// A TemplateProcessing. single: the parts of one sequence; pair: the parts of a pair; tokens: the special
// tokens of both.
nlohmann::json template_of(nlohmann::json single, nlohmann::json pair,
                           const std::vector<nlohmann::json>& tokens);

// The entry of `added` with this content. ContentsError, starting with `where`, if there is none.
const nlohmann::json& entry(const nlohmann::json& added, const std::string& content,
                            const std::string& where);

// The content of a special token in the config, or `otherwise`.
std::string role_text(const nlohmann::json& config, const char* role, const std::string& otherwise,
                      const std::string& source);

// <s> A </s>, if add_bos_token and add_eos_token of the config are true.
nlohmann::json bos_eos_template(const nlohmann::json& config, const nlohmann::json& added,
                                const std::string& bos, const std::string& eos, const std::string& source);

// Each concatenation of two pieces that gives a piece is a merge. Merges are in the order of the resulting
// pieces.
void make_merges(const SpModel& model, const Vocab& vocab, Merges& merges);

}  // namespace redco
