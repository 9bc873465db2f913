#include "tokenizers/sentencepiece/sp_plain.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>
#include <unordered_map>

#include "base/error.h"
#include "base/json_fields.h"
#include "base/utf8.h"
#include "tokenizers/load/config_tokens.h"
#include "tokenizers/sentencepiece/sp_pipeline.h"

namespace redco {
namespace {

using nlohmann::json;

json replace_regex(const char* regex, const char* to) {
  return {{"type", "Replace"}, {"pattern", {{"Regex", regex}}}, {"content", to}};
}

// Only normal pieces are merged, those with higher scores first.
void ranked_merges(const SpModel& model, const std::vector<std::string>& texts, Merges& merges) {
  std::unordered_map<std::string_view, std::size_t> normal;
  for (std::size_t k = 0; k < texts.size(); ++k)
    if (model.pieces[k].kind == SpModel::Kind::normal) normal[texts[k]] = k;
  using Merge = std::tuple<float, std::size_t, std::string_view, std::string_view>;
  std::vector<Merge> ranked;
  for (const auto& [text, k] : normal)
    for (const char *q = text.data(), *end = q + text.size(); q < end;) {
      next_code_point(q);
      const auto n = static_cast<std::size_t>(q - text.data());
      if (q < end && normal.contains(text.substr(0, n)) && normal.contains(text.substr(n)))
        ranked.emplace_back(-model.pieces[k].score, k, text.substr(0, n), text.substr(n));
    }
  std::sort(ranked.begin(), ranked.end());
  for (const auto& [score, k, left, right] : ranked) merges.add(left, right);
}

// The pieces' texts. In BPE, added_tokens_decoder renames them by id, unless another piece has the new name.
std::vector<std::string> piece_texts(const SpModel& model, bool bpe, const json& config) {
  std::vector<std::string> texts;
  for (const SpModel::Piece& p : model.pieces) texts.push_back(p.text);
  const auto list = config.find("added_tokens_decoder");
  if (!bpe || list == config.end() || !list->is_object()) return texts;
  std::set<std::string> kept;
  const auto name_of = [&](std::size_t k) -> std::string {
    const auto it = list->find(std::to_string(k));
    if (it == list->end() || !it->is_object()) return "";
    const auto content = it->find("content");
    return content != it->end() && content->is_string() ? content->get<std::string>() : "";
  };
  for (std::size_t k = 0; k < texts.size(); ++k)
    if (name_of(k).empty()) kept.insert(texts[k]);
  for (std::size_t k = 0; k < texts.size(); ++k)
    if (const std::string name = name_of(k); !name.empty() && !kept.contains(name)) texts[k] = name;
  return texts;
}

// Matches any of the texts, longer ones first.
std::string any_of_texts(std::vector<std::string> texts) {
  const auto length = [](const std::string& t) {
    return std::ranges::count_if(t, [](char c) { return (c & 0xC0) != 0x80; });
  };
  std::ranges::stable_sort(texts, std::greater<>(), length);
  std::string pattern;
  for (const std::string& t : texts) {
    if (!pattern.empty()) pattern += '|';
    for (const char c : t) {
      if (std::string_view("\\.+*?()|[]{}^$").find(c) != std::string_view::npos) pattern += '\\';
      pattern += c;
    }
  }
  return pattern;
}

}  // namespace

TokenizerSpec read_sp_plain(const SpModel& model, const json& config, const std::string& folder) {
  const std::string source = folder + "/tokenizer_config.json";
  JsonFields fields(config, source);
  TokenizerSpec spec;
  spec.source = source;
  spec.vocab.emplace();
  const bool unigram = model.algorithm == SpModel::Algorithm::unigram;
  const bool legacy = fields.boolean("legacy", true);
  const std::vector<std::string> texts = piece_texts(model, !unigram, config);
  std::vector<std::string> user_defined;
  for (std::size_t k = 0; k < texts.size(); ++k) {
    spec.vocab->add(texts[k], spec.vocab->count(), folder);
    if (unigram) spec.scores.push_back(static_cast<double>(model.pieces[k].score));
    if (model.pieces[k].kind == SpModel::Kind::user_defined) user_defined.push_back(texts[k]);
  }
  spec.vocab->finish(folder, true);

  if (model.bos_id >= 0) spec.roles["bos_token"] = model.bos_piece;
  if (model.eos_id >= 0) spec.roles["eos_token"] = model.eos_piece;
  if (model.unk_id >= 0) spec.roles["unk_token"] = model.unk_piece;
  const json otherwise = spec.roles;
  AddedTokenList list;
  list.add_from(config, otherwise, source);
  for (const SpModel::Piece& p : model.pieces)
    if (p.kind == SpModel::Kind::control) list.add(added_token(p.text, 0, true));
  json added = list.finish(*spec.vocab);
  if (model
          .add_dummy_prefix)  // added tokens match the raw text, so that each text between them gets a prefix
    for (json& t : added) t["normalized"] = false;

  json steps = json::array(), pre = json::array(), parts = json::array({replace(kSpaceMark, " ")});
  if (!model.charsmap.empty()) steps.push_back(precompiled(model));
  if (model.remove_extra_whitespaces) {
    steps.push_back(replace_regex("\\A +| +\\z", ""));
    steps.push_back(replace_regex(" {2,}", " "));
  }
  if (model.escape_whitespaces) steps.push_back(replace(" ", kSpaceMark));
  if (model.byte_fallback) parts.push_back({{"type", "ByteFallback"}});
  if (model.add_dummy_prefix || model.byte_fallback) parts.push_back({{"type", "Fuse"}});
  if (model.add_dummy_prefix) {
    // Metaspace adds no prefix to a text that starts with the mark, sentencepiece does.
    if (legacy) steps.push_back(replace_regex("\\A\xE2\x96\x81", "\xE2\x96\x81\xE2\x96\x81"));
    pre.push_back(metaspace(legacy ? "always" : "first", false));
    parts.push_back({{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}});
  }
  if (!user_defined.empty())
    pre.push_back({{"type", "Split"},
                   {"pattern", {{"Regex", any_of_texts(user_defined)}}},
                   {"behavior", "Isolated"},
                   {"invert", false}});
  json body;
  if (unigram) {
    body = {{"type", "Unigram"}, {"unk_id", model.unk_id}, {"byte_fallback", model.byte_fallback}};
  } else {
    ranked_merges(model, texts, spec.merges);
    spec.has_merges = true;
    body = {{"type", "BPE"},
            {"fuse_unk", true},
            {"unk_token", model.unk_piece},
            {"byte_fallback", model.byte_fallback},
            {"ignore_merges", !user_defined.empty()}};
  }
  json post = bos_eos_template(config, added, role_text(config, "bos_token", model.bos_piece, source),
                               role_text(config, "eos_token", model.eos_piece, source), source);
  *spec.rest = {
      {"added_tokens", std::move(added)},
      {"normalizer", {{"type", "Sequence"}, {"normalizers", std::move(steps)}}},
      {"pre_tokenizer", pre.empty() ? json(nullptr) : json{{"type", "Sequence"}, {"pretokenizers", pre}}},
      {"post_processor", std::move(post)},
      {"decoder", {{"type", "Sequence"}, {"decoders", std::move(parts)}}},
      {"model", std::move(body)}};
  return spec;
}

}  // namespace redco
