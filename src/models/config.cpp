#include "models/config.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/file.h"
#include "base/log_once.h"
#include "base/words.h"
#include "models/config_tree.h"
#include "models/hf_keys.h"
#include "nn/layers.h"

namespace redco {

using Json = nlohmann::ordered_json;

struct ModelConfig::State {
  Json json;
  std::map<std::string, Json> overrides;
  std::set<std::string> used, overridden, ignored;
  ConfigPlaces places;
  std::string prefix;  // of this part of the model: "", "encoder."
  // Keys without a value, and messages about other problems.
  std::vector<std::string> missing, usage_problems, file_problems;
  std::vector<std::string> without_effect;  // keys that transformers doesn't have
  std::optional<HfKeys> hf;                 // of the model_type
  bool any_problem() const { return !missing.empty() || !usage_problems.empty() || !file_problems.empty(); }
  std::string job_key(const std::string& key) const { return "model." + prefix + key; }
  std::string model_type() const {
    const auto it = json.find("model_type");
    return it != json.end() && it->is_string() ? it->get<std::string>() : "";
  }
  // An attribute that is given by another of its names is given. Overrides of the job replace both.
  void use_aliases() {
    const auto has = [&](const std::string& key) { return json.contains(key) && !json[key].is_null(); };
    for (const auto& [alias, key] : hf->aliases) {
      if (!has(alias)) continue;
      const bool ours = overridden.count(key), alias_ours = overridden.count(alias);
      if (!has(key) || (alias_ours && !ours)) {
        json[key] = Json(json[alias]);
        if (alias_ours) overridden.insert(key);
      } else if (ours && !alias_ours) {
        json[alias] = Json(json[key]);
      }
    }
  }
  static std::string place(const std::string& where) { return where == "default" ? "[model]" : where; }
};

ConfigJson::ConfigJson() : ConfigJson(ConfigTree{Json::object()}, "") {}
ConfigJson::ConfigJson(const ConfigTree& object, std::string source)
    : tree_(std::make_shared<const ConfigTree>(object)), source_(std::move(source)) {
  if (!tree_->json.is_object()) throw ContentsError("[model] {}: expected an object of settings", source_);
}

namespace {
std::atomic<i64> g_parsed_configs{0};
}
i64 ConfigJson::parses() { return g_parsed_configs; }

ConfigJson ConfigJson::parse(const std::string& text, std::string source) {
  ++g_parsed_configs;
  if (text.size() > (16u << 20)) throw ContentsError("[model] {}: larger than 16 MiB, not a config", source);
  try {
    bool too_deep = false;
    const Json json = Json::parse(without_python_floats(text), [&](int d, Json::parse_event_t, Json&) {
      too_deep |= d > 64;
      return d <= 64;
    });
    if (too_deep) throw ContentsError("[model] {}: nested deeper than 64 levels", source);
    return {ConfigTree{json}, std::move(source)};
  } catch (const nlohmann::json::exception& e) {
    throw ContentsError("[model] {}: not valid JSON: {}", source, e.what());
  }
}

ConfigJson ConfigJson::of_file(const std::string& path) { return parse(read_file(path, 16 << 20), path); }

std::string ConfigJson::text() const { return tree_->json.dump(2) + "\n"; }

ModelConfig::ModelConfig(const ConfigJson& config, const std::map<std::string, std::string>& overrides,
                         const std::vector<std::string>& ignore, ConfigPlaces places)
    : state_(std::make_unique<State>()), source_(config.source()) {
  state_->json = config.tree().json;
  for (const auto& [key, value] : overrides) {
    Json& old = state_->json[key];
    Json now = Json::parse(value);
    state_->overrides[key] = now;
    // The config of a part of the model is merged key by key; other objects are replaced.
    if (old.is_object() && old.contains("model_type") && now.is_object())
      old.update(now);
    else
      old = std::move(now);
    state_->overridden.insert(key);
  }
  state_->ignored.insert(ignore.begin(), ignore.end());
  state_->places = std::move(places);
  state_->hf = hf_keys(state_->model_type());
  if (state_->hf) state_->use_aliases();
}

ModelConfig::~ModelConfig() = default;
ModelConfig::ModelConfig(ModelConfig&&) noexcept = default;

void ModelConfig::note(const std::string& key, const std::string& why) const {
  State& s = *state_;
  const std::string value = mentions(key) ? "=" + s.json[key].dump().substr(0, 120) : "";
  const std::string ours = s.job_key(key), of = s.overridden.count(key) ? ours : "model.arch";
  if (s.overridden.count(key) || !s.places.arch.empty()) {
    s.usage_problems.push_back(
        fmt::format("{}: {}{}: {}", s.place(s.places.origins.where(of)), ours, value, why));
  } else {
    s.file_problems.push_back(fmt::format("[model] {}: {}{}: {}", source_, key, value, why));
  }
}

void ModelConfig::note_unknown(const std::string& key, const std::vector<std::string>& known) const {
  State& s = *state_;
  const std::string ours = s.job_key(key);
  if (!s.overridden.count(key))
    return note(
        key,
        "redco's model of this family has no such setting; if it does not change the computation, add it to "
        "model.ignore_config_keys");
  const std::string place = s.place(s.places.origins.where_key(ours));
  const std::string near = nearest(key, known);
  s.usage_problems.push_back(fmt::format("{}: unknown key {}; {}", place, ours,
                                         near.empty()
                                             ? fmt::format("this model's keys: {}", fmt::join(known, ", "))
                                             : fmt::format("did you mean {}?", s.job_key(near))));
}

void ModelConfig::report() const {
  State& s = *state_;
  const bool of_job = !s.places.arch.empty();
  if (!s.missing.empty()) {
    std::vector<std::string> keys;
    for (const std::string& key : s.missing) keys.push_back(of_job ? s.job_key(key) : key);
    if (of_job)
      s.usage_problems.push_back(fmt::format("{}: {} needs {}; {} missing",
                                             s.places.origins.where("model.arch"), s.places.arch,
                                             fmt::join(keys, ", "), keys.size() == 1 ? "it is" : "they are"));
    else
      s.file_problems.push_back(fmt::format("[model] {}: {}: missing; the model needs {}", source_,
                                            fmt::join(keys, ", "), keys.size() == 1 ? "it" : "them"));
  }
  std::vector<std::string> all = s.usage_problems;
  all.insert(all.end(), s.file_problems.begin(), s.file_problems.end());
  if (!s.usage_problems.empty()) throw UsageError("{}", fmt::join(all, "\n"));
  throw ContentsError("{}", fmt::join(all, "\n"));
}

void ModelConfig::fail(const std::string& key, const std::string& why) const {
  State& s = *state_;
  if (!s.any_problem()) note(key, why);
  // Other keys may still be read, but a key that resembles a missing one is a misspelling of it.
  for (const std::string& given : s.overridden)
    if (!s.used.count(given) && !nearest(given, s.missing).empty()) note_unknown(given, s.missing);
  report();
}

bool ModelConfig::has(const std::string& key) const {
  const auto it = state_->json.find(key);
  return it != state_->json.end() && !it->is_null();
}

bool ModelConfig::overridden(const std::string& key) const { return state_->overridden.count(key) > 0; }
bool ModelConfig::mentions(const std::string& key) const { return state_->json.contains(key); }

bool ModelConfig::require(const std::string& key) {
  state_->used.insert(key);
  if (!has(key)) state_->missing.push_back(key);
  return has(key);
}

i64 ModelConfig::integer(const std::string& key, i64 least) {
  const i64 legal = std::max<i64>(least, 1);
  if (!require(key)) return legal;
  const Json& v = state_->json[key];
  if (!v.is_number_integer()) return note(key, "expected a whole number"), legal;
  if (v.is_number_unsigned() && v.get<u64>() > (u64{1} << 40)) return note(key, "too large"), legal;
  const i64 n = v.get<i64>();
  if (n >= least && n <= (i64{1} << 40)) return n;
  return note(key, fmt::format("expected a whole number of at least {}", least)), legal;
}
i64 ModelConfig::integer_or(const std::string& key, i64 fallback, i64 least) {
  state_->used.insert(key);
  return has(key) ? integer(key, least) : fallback;
}
std::optional<i64> ModelConfig::maybe_integer(const std::string& key) {
  state_->used.insert(key);
  if (!has(key)) return std::nullopt;
  return integer(key, -1);
}
i64 ModelConfig::integer_as_or(const std::vector<std::string>& names, i64 fallback, i64 least) {
  std::optional<i64> value;
  std::string first;
  for (const std::string& name : names) {
    state_->used.insert(name);
    if (!has(name)) continue;
    const i64 n = integer(name, least);
    if (value && *value != n)
      fail(name, fmt::format("{}={} contradicts it; keep one of them", first, *value));
    if (!value) first = name;
    value = n;
  }
  return value.value_or(fallback);
}
i64 ModelConfig::integer_as(const std::vector<std::string>& names, i64 least) {
  const i64 none = least - 1, n = integer_as_or(names, none, least);
  return n == none ? integer(names[0], least) : n;
}
i64 ModelConfig::labels() {
  state_->used.insert("id2label");
  const bool named = has("id2label") && !state_->json["id2label"].empty();
  if (named && !state_->json["id2label"].is_object()) fail("id2label", "expected an object of names");
  const i64 names = named ? static_cast<i64>(state_->json["id2label"].size()) : 2;
  const i64 n = integer_or("num_labels", names);
  if (named && n != names) fail("num_labels", fmt::format("id2label names {} classes", names));
  return n;
}
ModelConfig ModelConfig::part(const std::string& key, const std::string& model_type) {
  state_->used.insert(key);
  if (!has(key) || !state_->json[key].is_object()) fail(key, "expected the config of that part of the model");
  return part_of(key, key, model_type, true);
}
ModelConfig ModelConfig::part_or_defaults(const std::string& key, const std::string& model_type) {
  const std::string older = key + "_dict";
  state_->used.insert({key, older});
  for (const std::string& k : {key, older})
    if (has(k) && !state_->json[k].is_object()) fail(k, "expected the config of that part of the model");
  return part_of(key, has(older) ? older : key, model_type, false);
}
ModelConfig ModelConfig::part_of(const std::string& key, const std::string& from,
                                 const std::string& model_type, bool typed) {
  Json json = has(from) ? state_->json[from] : Json::object();
  if (!typed && (!json.contains("model_type") || json["model_type"].is_null()))
    json["model_type"] = model_type;
  ModelConfig c(ConfigJson(ConfigTree{json}, source_ + ": " + from), {},
                {state_->ignored.begin(), state_->ignored.end()}, state_->places);
  c.state_->prefix = state_->prefix + key + ".";
  if (const auto it = state_->overrides.find(key); it != state_->overrides.end() && it->second.is_object())
    for (const auto& [inner, value] : it->second.items()) c.state_->overridden.insert(inner);
  c.expect("model_type", {'"' + model_type + '"'});
  if (!c.has("model_type")) c.fail("model_type", fmt::format("missing; supported: {}", model_type));
  return c;
}
i32 ModelConfig::token_or(const std::string& key, i32 fallback, i64 vocab_size) {
  state_->used.insert(key);
  if (!mentions(key)) return fallback;
  if (!has(key)) return -1;
  const i64 id = integer(key, -1);
  if (id >= vocab_size) fail(key, fmt::format("expected less than vocab_size={}", vocab_size));
  return static_cast<i32>(id);
}
double ModelConfig::number_or(const std::string& key, double fallback) {
  state_->used.insert(key);
  if (!has(key)) return fallback;
  const Json& v = state_->json[key];
  if (v.is_number() && std::isfinite(v.get<double>())) return v.get<double>();
  return note(key, "expected a finite number"), fallback;
}
double ModelConfig::positive_or(const std::string& key, double fallback) {
  const double x = number_or(key, fallback);
  if (x > 0) return x;
  return note(key, "expected a number above 0"), 1;
}
double ModelConfig::rate_or(const std::string& key, double fallback) {
  const double x = number_or(key, fallback);
  if (x >= 0 && x < 1) return x;
  return note(key, "expected a rate in [0, 1)"), 0;
}
i64 ModelConfig::padding_row(i64 vocab_size) {
  const std::optional<i64> id = maybe_integer("pad_token_id");
  if (!id) return -1;
  if (*id >= vocab_size) fail("pad_token_id", fmt::format("expected less than vocab_size={}", vocab_size));
  return *id < 0 ? vocab_size + *id : *id;  // torch counts from the end
}
std::string ModelConfig::activation_or(const std::string& key, const std::string& fallback) {
  const std::string name = text_or(key, fallback);
  if (is_activation(name)) return name;
  return note(key, fmt::format("not supported; supported: {}", fmt::join(activation_names(), ", "))),
         fallback;
}
bool ModelConfig::boolean_or(const std::string& key, bool fallback) {
  state_->used.insert(key);
  if (!has(key)) return fallback;
  const Json& v = state_->json[key];
  if (v.is_boolean()) return v.get<bool>();
  return note(key, "expected true or false"), fallback;
}
std::string ModelConfig::text_or(const std::string& key, const std::string& fallback) {
  state_->used.insert(key);
  if (!has(key)) return fallback;
  const Json& v = state_->json[key];
  if (v.is_string()) return v.get<std::string>();
  return note(key, "expected a string"), fallback;
}
std::string ModelConfig::json(const std::string& key) {
  state_->used.insert(key);
  const auto it = state_->json.find(key);
  return it == state_->json.end() ? "null" : it->dump();
}
void ModelConfig::expect(const std::string& key, const std::vector<std::string>& values) {
  state_->used.insert(key);
  if (!has(key)) return;
  for (const std::string& v : values)
    if (state_->json[key] == Json::parse(v)) return;
  note(key, fmt::format("not supported; supported: {}", fmt::join(values, ", ")));
}
void ModelConfig::inert(const std::vector<std::string>& keys) {
  state_->used.insert(keys.begin(), keys.end());
}

namespace {
// Layers with attention to all earlier tokens, which is what families without layer_types compute.
bool all_full(const Json& layer_types) {
  return layer_types.is_array() &&
         std::ranges::all_of(layer_types, [](const Json& t) { return t == "full_attention"; });
}
}  // namespace

void ModelConfig::finish() {
  const std::vector<std::string> known(state_->used.begin(), state_->used.end());
  if (!state_->used.count("add_cross_attention")) expect("add_cross_attention", {"false"});
  expect("cross_attention_hidden_size", {"null"});
  expect("pruned_heads", {"{}", "null"});
  if (!state_->used.count("quantization_config")) expect("quantization_config", {"null"});
  expect("tie_encoder_decoder", {"false"});
  const std::optional<HfKeys>& hf = state_->hf;
  if (hf && hf->attributes.count("is_decoder") && !state_->used.count("is_decoder"))
    expect("is_decoder", {hf->attributes.at("is_decoder").value_or(false).dump()});
  for (const auto& [key, value] : state_->json.items()) {
    if (value.is_null() || state_->used.count(key) || state_->ignored.count(key) || is_common_key(key))
      continue;
    if (!hf) {
      note_unknown(key, known);
      continue;
    }
    const auto alias = hf->aliases.find(key);
    const auto attribute = hf->attributes.find(key);
    if (alias != hf->aliases.end()) {
      if (value != state_->json[alias->second])
        note(key, fmt::format("{}={} contradicts it, and both are names of one setting; keep one of them",
                              alias->second, state_->json[alias->second].dump().substr(0, 120)));
    } else if (attribute == hf->attributes.end()) {
      if (state_->overridden.count(key))
        note_unknown(key, known);
      else
        state_->without_effect.push_back(key);
    } else if (attribute->second && value != *attribute->second &&
               !(key == "layer_types" && all_full(value))) {
      const Json& supported = *attribute->second;
      note(key, fmt::format(
                    "transformers reads this key for model_type {}, and redco supports only {}; if it "
                    "doesn't change the computation, add it to model.ignore_config_keys",
                    state_->model_type(), supported.is_null() ? "null (or no such key)" : supported.dump()));
    }
  }
  if (state_->any_problem()) report();
  for (const std::string key : {"dtype", "torch_dtype"})
    if (state_->overridden.count(key))
      log_once(LogLevel::info,
               fmt::format("[model] {}={} has no effect: redco computes in train.compute_dtype, and frozen "
                           "weights are stored in model.weight_dtype",
                           state_->job_key(key), state_->json[key].dump().substr(0, 120)));
  if (state_->without_effect.empty()) return;
  log_once(LogLevel::info,
           fmt::format("[model] {}: ignored, because transformers {} has no such keys for model_type {}: {}",
                       source_, kHfVersion, state_->model_type(), fmt::join(state_->without_effect, ", ")));
}

ConfigJson ModelConfig::dump() const {
  Json json = state_->json;
  if (has("quantization_config")) json.erase("quantization_config");  // of the files that were read
  return {ConfigTree{json}, source_};
}

}  // namespace redco
