#include "tokenizers/load/special_tokens.h"

#include <algorithm>
#include <map>

#include "base/error.h"
#include "base/file.h"
#include "base/json_fields.h"
#include "tokenizers/load/class_tokens.h"
#include "tokenizers/load/config_tokens.h"

namespace redco {

namespace {

using nlohmann::json;

constexpr i64 kMaxSmallJson = i64{16} << 20;
constexpr const char* kClassRoles[] = {"bos_token", "eos_token", "unk_token", "sep_token",
                                       "pad_token", "cls_token", "mask_token"};

json read_object_of(const std::string& folder, const char* name) {
  const std::string path = join_path(folder, name);
  if (!exists(path) || is_folder(path)) return json::object();
  json v = parse_small_json(read_file(path, kMaxSmallJson), path);
  if (!v.is_object()) throw ContentsError("{}: the file is not a JSON object", path);
  return v;
}

// The text of a token given as a string or an AddedToken object; "" for another value.
std::string content_of(const json& token) {
  if (token.is_string()) return token.get<std::string>();
  const auto content = token.is_object() ? token.find("content") : token.end();
  return token.is_object() && content != token.end() && content->is_string() ? content->get<std::string>()
                                                                             : "";
}

bool is_added(const TokenizerSpec& spec, const std::string& text) {
  const auto added = spec.rest->find("added_tokens");
  return added != spec.rest->end() && added->is_array() &&
         std::ranges::any_of(*added, [&](const json& t) { return content_of(t) == text; });
}

}  // namespace

std::string tokenizer_class_of(const json& config, const std::string& folder) {
  std::string name = config.value("tokenizer_class", json()).is_string() ? config["tokenizer_class"] : "";
  if (name.empty()) {
    const json model = read_object_of(folder, "config.json");
    const auto text = [&](const char* key) {
      const auto it = model.find(key);
      return it != model.end() && it->is_string() ? it->get<std::string>() : std::string();
    };
    name = text("tokenizer_class");
    if (name.empty()) name = class_of_model_type(text("model_type"));
  }
  if (name.ends_with("Fast")) name.resize(name.size() - 4);
  return name;
}

void complete_roles(json& config, const std::string& folder, const TokenizerSpec& spec) {
  const json map = read_object_of(folder, "special_tokens_map.json");
  for (const auto& [role, token] : map.items())
    if (!config.contains(role) || config[role].is_null()) config[role] = token;
  const ClassTokens* defaults = find_class_tokens(tokenizer_class_of(config, folder));
  for (std::size_t r = 0; defaults && r < std::size(kClassRoles); ++r) {
    const std::string text = defaults->tokens[r] ? defaults->tokens[r] : "";
    if (!text.empty() && !config.contains(kClassRoles[r]) &&
        ((spec.vocab && spec.vocab->find(text) >= 0) || is_added(spec, text)))
      config[kClassRoles[r]] = text;
  }
}

void add_named_tokens(TokenizerSpec& spec, const json& config, const std::string& folder) {
  const std::string source = join_path(folder, "tokenizer_config.json");
  AddedTokenList named;
  named.add_from(config, json::object(), source);
  for (const char* key : {"additional_special_tokens", "extra_special_tokens"}) {
    const auto list = config.find(key);
    if (list == config.end() || list->is_null()) continue;
    if (!list->is_structured()) throw ContentsError("{}: {}: expected a list of tokens", source, key);
    for (const json& token : *list)
      named.add(*special_of(json{{"token", token}}, "token", source + ": " + key));
  }
  const json older = read_object_of(folder, "added_tokens.json");
  std::map<i64, std::string> by_id;
  for (const auto& [text, id] : older.items())
    if (id.is_number_integer()) by_id[id.get<i64>()] = text;
  if (!config.contains("added_tokens_decoder"))
    for (const auto& [id, text] : by_id) {
      json token = added_token(text, 0, false);
      token["normalized"] = true;
      named.add(std::move(token));
    }

  json& added = (*spec.rest)["added_tokens"];
  if (added.is_null()) added = json::array();
  if (!added.is_array()) return;  // the constructor of the tokenizer reports it
  i64 next = spec.vocab->count();
  for (const json& t : added)
    if (const auto id = t.is_object() ? t.find("id") : t.end();
        t.is_object() && id != t.end() && id->is_number())
      next = std::max(next, id->get<i64>() + 1);
  for (json& token : named.take()) {
    const auto text = token["content"].get<std::string>();
    if (text.empty() || is_added(spec, text)) continue;
    const i32 id = spec.vocab->find(text);
    token["id"] = id >= 0 ? i64{id} : next++;
    added.push_back(std::move(token));
  }
}

SpecialIds model_config_ids(const json& config, const std::string& folder) {
  SpecialIds out;
  for (const char* file : {"generation_config.json", "config.json"}) {
    const json c = read_object_of(folder, file);
    const auto take = [&](const char* role, const char* key, std::optional<i32>& to) {
      const auto it = c.find(key);
      if (to || config.contains(role) || it == c.end()) return;
      const json& id = it->is_array() && !it->empty() ? (*it)[0] : *it;
      if (id.is_number_unsigned() && id.get<u64>() <= u64{Vocab::kMaxId}) to = id.get<i32>();
    };
    take("bos_token", "bos_token_id", out.bos);
    take("eos_token", "eos_token_id", out.eos);
    take("pad_token", "pad_token_id", out.pad);
  }
  return out;
}

}  // namespace redco
