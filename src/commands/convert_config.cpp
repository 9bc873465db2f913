#include "commands/convert_config.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/error.h"
#include "base/words.h"
#include "models/hf_keys.h"

namespace redco {

using Json = nlohmann::ordered_json;

Json full_config(const Json& given) {
  Json j = given;
  const auto keys = hf_keys(given.value("model_type", ""));
  if (keys) {
    for (const auto& [alias, name] : keys->aliases) {
      if (j.contains(alias) && !j.contains(name)) j[name] = j[alias];
      if (j.contains(name)) j[alias] = j[name];
    }
    for (const auto& [key, value] : keys->attributes)
      if (value && !value->is_null() && !j.contains(key) && !key.starts_with("rope_")) j[key] = *value;
  }
  Json rope = given.value("rope_parameters", Json());
  if (rope.is_object() && rope.contains("full_attention")) {  // Gemma 3: one for each type of layers
    if (rope.contains("sliding_attention"))
      j["rope_local_base_freq"] = rope["sliding_attention"].value("rope_theta", 10000.0);
    rope = Json(rope["full_attention"]);
  }
  if (rope.is_object()) {
    if (rope.contains("rope_theta")) j["rope_theta"] = rope["rope_theta"];
    if (rope.contains("partial_rotary_factor")) j["partial_rotary_factor"] = rope["partial_rotary_factor"];
    if (rope.value("rope_type", "default") != "default") j["rope_scaling"] = rope;
  }
  if (keys && !j.contains("rope_theta"))
    if (const auto it = keys->attributes.find("rope_theta"); it != keys->attributes.end() && it->second)
      j["rope_theta"] = *it->second;
  return j;
}

namespace {

bool same_value(const Json& a, const Json& b) {
  if (a.is_number() && b.is_number()) {
    const double x = a.get<double>(), y = b.get<double>();
    return std::abs(x - y) <= 1e-6 * std::max(std::abs(x), std::abs(y));
  }
  if (a.is_object() && b.is_object()) {  // of rope_scaling: what both say
    for (const auto& [key, value] : a.items())
      if (b.contains(key) && !same_value(value, b[key])) return false;
    return true;
  }
  if (a.is_array() && b.is_array() && a.size() == b.size()) {
    for (std::size_t i = 0; i < a.size(); ++i)
      if (!same_value(a[i], b[i])) return false;
    return true;
  }
  return a == b;
}

}  // namespace

void check_config(const Json& given, const Json& full, const Json& written, const std::string& where) {
  std::vector<std::string> lost;
  const auto says = [](const Json& v) { return excerpt(v.dump()); };
  for (const auto& [key, value] : written.items()) {
    if (is_common_key(key) || !full.contains(key) || full[key].is_null()) continue;
    if (!same_value(full[key], value))
      lost.push_back(fmt::format("{} is {}, the file gives {}", key, says(full[key]), says(value)));
  }
  static const std::set<std::string> kSaid = {"rope_parameters",
                                              "rope_theta",
                                              "rope_scaling",
                                              "head_dim",
                                              "num_key_value_heads",
                                              "tie_word_embeddings",
                                              "original_max_position_embeddings"};
  const auto keys = hf_keys(given.value("model_type", ""));
  const bool no_window = given.contains("use_sliding_window") && given["use_sliding_window"] == false;
  for (const auto& [key, value] : given.items()) {
    if (no_window && key.find("window") != key.npos) continue;
    if (is_common_key(key) || kSaid.count(key) || written.contains(key) || value.is_null() || !keys) continue;
    const auto alias = std::ranges::find_if(keys->aliases, [&, key = key](const auto& a) {
      return (a.first == key && written.contains(a.second)) || (a.second == key && written.contains(a.first));
    });
    if (alias != keys->aliases.end()) continue;
    const auto it = keys->attributes.find(key);
    if (it == keys->attributes.end() || !it->second || same_value(*it->second, value)) continue;
    if (key.find("drop") == key.npos && key.find("loss") == key.npos && key.find("layer_types") == key.npos &&
        key != "output_router_logits")  // training alone reads it
      lost.push_back(fmt::format("{}={} has no key in a GGUF file", key, says(value)));
  }
  if (!lost.empty()) throw ContentsError("[convert] {}: {}. Use --to hf", where, fmt::join(lost, "; "));
}

}  // namespace redco
