#include "tokenizers/sentencepiece/sp_pipeline.h"

#include "base/base64.h"
#include "base/error.h"
#include "base/json_fields.h"
#include "base/utf8.h"
#include "tokenizers/load/config_tokens.h"

namespace redco {

using nlohmann::json;

json metaspace(const char* scheme, bool split) {
  return {{"type", "Metaspace"}, {"replacement", kSpaceMark}, {"prepend_scheme", scheme}, {"split", split}};
}

json replace(const char* from, const char* to) {
  return {{"type", "Replace"}, {"pattern", {{"String", from}}}, {"content", to}};
}

json sequence_part(const char* name, int type) { return {{"Sequence", {{"id", name}, {"type_id", type}}}}; }
json special_part(const json& token, int type) {
  return {{"SpecialToken", {{"id", token["content"]}, {"type_id", type}}}};
}

json template_of(json single, json pair, const std::vector<json>& tokens) {
  json table = json::object();
  for (const json& t : tokens)
    table[t["content"].get<std::string>()] = {
        {"id", t["content"]}, {"ids", {t["id"]}}, {"tokens", {t["content"]}}};
  return {{"type", "TemplateProcessing"},
          {"single", std::move(single)},
          {"pair", std::move(pair)},
          {"special_tokens", std::move(table)}};
}

const json& entry(const json& added, const std::string& content, const std::string& where) {
  for (const json& t : added)
    if (t["content"] == content) return t;
  throw ContentsError("{}: the token '{}' is not in the vocabulary", where, content.substr(0, 100));
}

std::string role_text(const json& config, const char* role, const std::string& otherwise,
                      const std::string& source) {
  const auto token = special_of(config, role, source);
  return token ? (*token)["content"].get<std::string>() : otherwise;
}

json bos_eos_template(const json& config, const json& added, const std::string& bos, const std::string& eos,
                      const std::string& source) {
  JsonFields f(config, source);
  const bool add_bos = f.boolean("add_bos_token", false), add_eos = f.boolean("add_eos_token", false);
  std::vector<json> used;
  if (add_bos) used.push_back(entry(added, bos, f.at("bos_token")));
  if (add_eos) used.push_back(entry(added, eos, f.at("eos_token")));
  auto put = [&](json& list, const char* name, int type) {
    if (add_bos) list.push_back(special_part(used.front(), type));
    list.push_back(sequence_part(name, type));
    if (add_eos) list.push_back(special_part(used.back(), type));
  };
  json single = json::array(), pair = json::array();
  put(single, "A", 0);
  put(pair, "A", 0);
  put(pair, "B", 1);
  return template_of(std::move(single), std::move(pair), used);
}

void make_merges(const SpModel& model, const Vocab& vocab, Merges& merges) {
  for (const SpModel::Piece& p : model.pieces) {
    const std::string_view text = p.text;
    for (const char *q = text.data(), *end = q + text.size(); q < end;) {
      next_code_point(q);
      const auto n = static_cast<std::size_t>(q - text.data());
      if (q < end && vocab.find(text.substr(0, n)) >= 0 && vocab.find(text.substr(n)) >= 0)
        merges.add(text.substr(0, n), text.substr(n));
    }
  }
}

json precompiled(const SpModel& model) {
  return {{"type", "Precompiled"}, {"precompiled_charsmap", encode_base64(model.charsmap)}};
}

}  // namespace redco
