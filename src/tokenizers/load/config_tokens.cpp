#include "tokenizers/load/config_tokens.h"

#include <algorithm>
#include <map>

#include "base/error.h"
#include "base/json_fields.h"

namespace redco {

using nlohmann::json;

namespace {

// In the order of transformers.
constexpr const char* kRoles[] = {"bos_token", "eos_token", "unk_token", "sep_token",
                                  "pad_token", "cls_token", "mask_token"};

json read_token(const json& value, const std::string& where, bool special) {
  json token = added_token("", 0, special);
  if (value.is_string()) {
    token["content"] = value;
    return token;
  }
  JsonFields f(value, where);
  token["content"] = f.text("content");
  for (const char* flag : {"lstrip", "rstrip", "single_word", "normalized"})
    token[flag] = f.boolean(flag, false);
  token["special"] = special || f.boolean("special", false);
  return token;
}

}  // namespace

json added_token(const std::string& content, i64 id, bool special) {
  return {{"id", id},        {"content", content},  {"single_word", false}, {"lstrip", false},
          {"rstrip", false}, {"normalized", false}, {"special", special}};
}

std::optional<json> special_of(const json& config, const char* name, const std::string& source) {
  const auto it = config.find(name);
  if (it == config.end() || it->is_null()) return std::nullopt;
  return read_token(*it, source + ": " + name, true);
}

void AddedTokenList::add(json token) {
  for (const json& t : tokens_)
    if (t["content"] == token["content"]) return;
  tokens_.push_back(std::move(token));
}

void AddedTokenList::add_from(const json& config, const json& otherwise, const std::string& source) {
  if (const auto list = config.find("added_tokens_decoder"); list != config.end() && list->is_object()) {
    std::map<i64, json> by_id;
    for (const auto& [id, token] : list->items()) {
      if (id.empty() || id.size() > 9 || id.find_first_not_of("0123456789") != std::string::npos)
        throw ContentsError("{}: added_tokens_decoder: the key '{}' is not an id", source, id.substr(0, 50));
      by_id[std::stoll(id)] =
          read_token(token, fmt::format("{}: added_tokens_decoder['{}']", source, id), false);
    }
    for (auto& [id, token] : by_id) add(std::move(token));
  }
  for (const char* role : kRoles) {
    if (auto token = special_of(config, role, source))
      add(std::move(*token));
    else if (!config.contains(role) && otherwise.contains(role))
      add(added_token(otherwise[role].get<std::string>(), 0, true));
  }
}

json AddedTokenList::finish(const Vocab& vocab) {
  i64 next = vocab.count();
  for (json& t : tokens_) {
    const i32 id = vocab.find(t["content"].get_ref<const std::string&>());
    t["id"] = id >= 0 ? i64{id} : next++;
  }
  std::sort(tokens_.begin(), tokens_.end(),
            [](const json& a, const json& b) { return a["id"].get<i64>() < b["id"].get<i64>(); });
  return json(std::move(tokens_));
}

}  // namespace redco
