#include "ckpt/peft.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/file.h"
#include "base/log_once.h"
#include "base/strict_json.h"
#include "base/words.h"
#include "ckpt/hub.h"
#include "ckpt/params_io.h"
#include "gguf/folder.h"
#include "shard/name_regex.h"

namespace redco::ckpt {

namespace {

using Json = nlohmann::json;

constexpr i64 kMaxConfigBytes = 16 << 20;
constexpr i64 kMaxRank = 1 << 20;

// Keys of PEFT's LoraConfig without an effect here: the tensors show which layers have adapters, and the
// settings of an initialization matter only to the values of init_lora_weights that use them: eva, whose
// result is in the adapter's tensors, and loftq, corda and lora_ga, which are refused there.
const std::set<std::string> kSayNothing = {
    "auto_mapping",        "corda_config",   "eva_config",     "exclude_modules",  "fan_in_fan_out",
    "inference_mode",      "layers_pattern", "loftq_config",   "lora_ga_config",   "megatron_core",
    "layers_to_transform", "peft_version",   "runtime_config", "qalora_group_size"};

// Its other keys, of which only values that are off are read (0.21.2).
const std::set<std::string> kRefused = {"alora_invocation_tokens",
                                        "arrow_config",
                                        "ensure_weight_tying",
                                        "kasa_config",
                                        "layer_replication",
                                        "lora_bias",
                                        "megatron_config",
                                        "monteclora_config",
                                        "target_parameters",
                                        "trainable_token_indices",
                                        "use_bdlora",
                                        "use_qalora",
                                        "velora_config"};

class ConfigReader {
 public:
  ConfigReader(const Json& j, std::string where) : j_(j), where_(std::move(where)) {
    if (!j.is_object()) throw ContentsError("[adapter] {}: expected an object of settings", where_);
  }

  template <class T>
  T get(const char* key, T otherwise, const char* expected, bool (Json::*is)() const noexcept) {
    known_.insert(key);
    const auto it = j_.find(key);
    if (it == j_.end() || it->is_null()) return otherwise;
    if (!((*it).*is)()) fail(key, expected);
    return it->get<T>();
  }
  std::string text(const char* key) { return get<std::string>(key, "", "a text", &Json::is_string); }
  bool flag(const char* key) { return get<bool>(key, false, "true or false", &Json::is_boolean); }
  double number(const char* key, double otherwise) {
    return get<double>(key, otherwise, "a number", &Json::is_number);
  }
  i64 rank(const Json& v, const char* key) {
    if (!v.is_number_integer() || v.get<i64>() < 1 || v.get<i64>() > kMaxRank) fail(key, "an integer >= 1");
    return v.get<i64>();
  }
  const Json* value(const char* key) {
    known_.insert(key);
    const auto it = j_.find(key);
    return it == j_.end() || it->is_null() ? nullptr : &*it;
  }
  std::vector<std::string> texts(const char* key) {
    std::vector<std::string> out;
    const Json* v = value(key);
    if (!v) return out;
    if (!v->is_array()) fail(key, "a list of texts");
    for (const Json& e : *v) {
      if (!e.is_string()) fail(key, "a list of texts");
      out.push_back(e.get<std::string>());
    }
    return out;
  }
  // A pattern of names.
  std::string pattern(const std::string& text, const char* key) {
    try {
      NameRegex("(.*\\.)?(" + text + ")");
    } catch (const UsageError& e) {
      fail(key, fmt::format("regular expressions: {}", e.what()));
    }
    return text;
  }
  [[noreturn]] void fail(const char* key, const std::string& expected) const {
    const auto it = j_.find(key);
    throw ContentsError("[adapter] {}: {}={}: expected {}", where_, key,
                        it == j_.end() ? "" : shown(it->dump(-1, ' ', false, Json::error_handler_t::replace)),
                        expected);
  }
  // Checks the other keys: each must be without an effect or off. PEFT has no others, so they can't change
  // a result: the log lists them.
  void finish() const {
    std::vector<std::string> unknown;
    for (const auto& [key, v] : j_.items()) {
      if (known_.count(key) || kSayNothing.count(key)) continue;
      const bool off = v.is_null() || v == false || ((v.is_object() || v.is_array()) && v.empty());
      if (off) continue;
      if (!kRefused.count(key)) {
        unknown.push_back(shown(key));
        continue;
      }
      throw ContentsError("[adapter] {}: {}={} is not supported", where_, shown(key),
                          shown(v.dump(-1, ' ', false, Json::error_handler_t::replace)));
    }
    if (!unknown.empty())
      log_once(LogLevel::info,
               fmt::format("[adapter] {}: ignored, because PEFT has no such keys for LoRA: {}", where_,
                           fmt::join(unknown, ", ")));
  }

 private:
  const Json& j_;
  std::string where_;
  std::set<std::string> known_;
};

// Copies of the base's values that PEFT writes too: the layer under an adapter, a module before training, and
// a trained module under its inner name.
bool is_copy(const std::string& stored) {
  return stored.find(".base_layer.") != stored.npos || stored.find(".original_module.") != stored.npos ||
         stored.find(".modules_to_save.") != stored.npos;
}

// ContentsError if the adapter has embeddings of another vocabulary than the base model.
void check_vocabulary(const ModelParams& params, const ModelFiles::Located& l, const std::string& name) {
  for (const ParamSpec& s : params.specs) {
    const Shape &own = s.stored.shape, &have = l.entry->shape;
    if (s.stored.name != name || have.size() != 2 || own.size() != 2 || have[1] != own[1] ||
        have[0] == own[0])
      continue;
    throw ContentsError(
        "[adapter] {}: {} has {} rows, but the base model's vocabulary has {}: it was resized before the adapter "
        "was trained. Set model.resize_embeddings: true, and model.tokenizer to the adapter's tokenizer",
        l.file->path(), l.entry->name, have[0], own[0]);
  }
}

// The name without base_model.model., in the specs' spelling; "" if the prefix is missing.
std::string own_name(const std::string& stored, const CanonicalName& canonical) {
  const std::string_view prefix = kAdapterPrefix;
  return stored.starts_with(prefix) ? canonical(stored.substr(prefix.size())) : "";
}

// The module of A or B of an adapter, "q_proj" of "q_proj.lora_A.weight"; "" for other names.
std::string module_of_adapter(const std::string& name) {
  for (const std::string_view end : {".lora_A.weight", ".lora_B.weight"})
    if (name.ends_with(end)) return name.substr(0, name.size() - end.size());
  return "";
}

// Whether a tensor, without base_model.model., is the adapter of a layer that the model doesn't use (BERT's
// pooler), as PEFT makes for target_modules: all-linear.
bool is_idle(const std::vector<ParamSpec>& specs, const std::string& name, const CanonicalName& canonical) {
  const std::string module = module_of_adapter(name);
  if (module.empty()) return false;
  const std::string weight = canonical(module + ".weight");
  return weight.empty() ||
         std::ranges::any_of(specs, [&](const ParamSpec& s) { return s.buffer && s.stored.name == weight; });
}

}  // namespace

bool is_adapter(const std::string& folder) { return exists(join_path(folder, kAdapterConfig)); }

PeftAdapter parse_adapter(const std::string& json, const std::string& where) {
  const Json j = parse_strict_json(json, where);
  ConfigReader c(j, where);
  PeftAdapter out;
  if (const std::string type = c.text("peft_type"); type != "LORA")
    throw ContentsError("[adapter] {}: peft_type={}, but only LORA is supported", where, excerpt(type));
  out.base = c.text("base_model_name_or_path");
  out.revision = c.text("revision");
  out.task_type = c.text("task_type");
  LoraConfig& l = out.config;
  const Json* r = c.value("r");
  l.rank = r ? c.rank(*r, "r") : 8;
  l.alpha = c.number("lora_alpha", 8);
  l.dropout = c.number("lora_dropout", 0);
  if (!(l.dropout >= 0 && l.dropout < 1)) c.fail("lora_dropout", "a number from 0 to 1");
  l.use_rslora = c.flag("use_rslora");
  if (const std::string bias = c.text("bias"); !bias.empty() && bias != "none")
    c.fail("bias", "none (trained biases are not supported)");
  if (c.flag("use_dora")) c.fail("use_dora", "false (DoRA is not supported)");
  // Other values (pissa, olora, corda, loftq) need a changed base model.
  if (const Json* init = c.value("init_lora_weights"))
    if (!init->is_boolean() && *init != "gaussian" && *init != "eva" && *init != "orthogonal")
      c.fail("init_lora_weights",
             "true, false, gaussian, eva or orthogonal (other values change the base model)");
  if (const Json* targets = c.value("target_modules"); targets && targets->is_string()) {
    l.target_regex = targets->get<std::string>();
    if (l.target_regex == kAllLinear) {
      l.target_regex.clear();
      l.target_modules = {kAllLinear};
    }
  } else {
    l.target_modules = c.texts("target_modules");
  }
  l.modules_to_save = c.texts("modules_to_save");
  if (const Json* ranks = c.value("rank_pattern")) {
    if (!ranks->is_object()) c.fail("rank_pattern", "an object of ranks");
    for (const auto& [pattern, v] : ranks->items())
      l.rank_pattern[c.pattern(pattern, "rank_pattern")] = c.rank(v, "rank_pattern");
  }
  if (const Json* alphas = c.value("alpha_pattern")) {
    if (!alphas->is_object()) c.fail("alpha_pattern", "an object of numbers");
    for (const auto& [pattern, v] : alphas->items()) {
      if (!v.is_number()) c.fail("alpha_pattern", "an object of numbers");
      l.alpha_pattern[c.pattern(pattern, "alpha_pattern")] = v.get<double>();
    }
  }
  c.finish();
  return out;
}

PeftAdapter read_adapter(const std::string& folder) {
  const std::string path = join_path(folder, kAdapterConfig);
  if (!exists(path))
    throw UsageError("[adapter] {} has no {}, so it is not a PEFT adapter", folder, kAdapterConfig);
  PeftAdapter out = parse_adapter(read_file(path, kMaxConfigBytes), path);
  out.folder = folder;
  return out;
}

std::string adapter_config_json(const PeftAdapter& a, const ModelParams& params,
                                const std::vector<std::string>& modules) {
  const LoraConfig& l = a.config;
  nlohmann::ordered_json j;
  j["peft_type"] = "LORA";
  j["task_type"] = a.task_type.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(a.task_type);
  j["base_model_name_or_path"] = a.base.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(a.base);
  if (!a.revision.empty()) j["revision"] = a.revision;
  j["r"] = l.rank;
  if (l.alpha == static_cast<double>(static_cast<i64>(l.alpha))) {
    j["lora_alpha"] = static_cast<i64>(l.alpha);
  } else {
    j["lora_alpha"] = l.alpha;
  }
  j["lora_dropout"] = l.dropout;
  j["use_rslora"] = l.use_rslora;
  j["bias"] = "none";
  // Conv1D stores its weight as (in, out); PEFT needs this to merge.
  bool transposed = false;
  for (const ParamSpec& s : params.specs)
    transposed = transposed || (s.stored.transposed && s.shape.size() == 2);
  j["fan_in_fan_out"] = transposed;
  if (!l.target_regex.empty()) {
    j["target_modules"] = l.target_regex;
  } else {
    j["target_modules"] = short_targets(params, modules);
  }
  if (l.modules_to_save.empty()) {
    j["modules_to_save"] = nullptr;
  } else {
    j["modules_to_save"] = l.modules_to_save;
  }
  j["rank_pattern"] = l.rank_pattern;
  j["alpha_pattern"] = l.alpha_pattern;
  j["init_lora_weights"] = true;
  j["inference_mode"] = true;
  return j.dump(2) + "\n";
}

std::string base_folder(const PeftAdapter& a, const std::string& how) {
  const std::string path = join_path(a.folder, kAdapterConfig);
  if (a.base.empty()) throw UsageError("[adapter] {} has no base model; {}", path, how);
  if (gguf::is_gguf(a.base) && exists(a.base)) return gguf::folder_of(a.base);
  if (is_folder(a.base)) return local_source(a.base);
  if (!a.base.starts_with("/"))
    if (const std::string beside = join_path(a.folder, a.base); is_folder(beside)) return beside;
  const std::string id = a.revision.empty() ? a.base : a.base + "@" + a.revision;
  if (const std::string cached = local_source(id); is_folder(cached)) return cached;
  throw UsageError("[adapter] {}: the folder of the base model '{}' does not exist; {}{}", path,
                   excerpt(a.base, 200), how, hub_hint(id));
}

std::vector<std::string> adapter_modules(const ModelParams& params, const PeftAdapter& adapter,
                                         const CanonicalName& canonical) {
  const ModelFiles files = ModelFiles::open(adapter.folder, kAdapterStem);
  std::map<std::string, Shape> weights;  // of the unsharded linear layers: (out, in)
  const std::vector<std::string> linear = linear_modules(params);
  for (const ParamSpec& s : params.specs) {
    if (s.kind != ParamKind::linear || s.stored.shape.size() != 2) continue;
    Shape whole = s.stored.shape;
    if (s.stored.transposed) std::swap(whole[0], whole[1]);
    weights[s.stored.name] = whole;
  }
  std::map<std::string, int> found;  // module -> A: 1, B: 2
  for (const ModelFiles::Located& l : files.tensors()) {
    const std::string& stored = l.entry->name;
    if (is_copy(stored)) continue;
    if (stored.starts_with(kAdapterPrefix) &&
        is_idle(params.specs, stored.substr(std::string_view(kAdapterPrefix).size()), canonical)) {
      log_once(LogLevel::info,
               fmt::format("[adapter] {}: ignored, because the model doesn't use the layer: {}",
                           adapter.folder, stored.substr(0, stored.find(".lora_"))));
      continue;
    }
    const std::string name = own_name(stored, canonical);
    check_vocabulary(params, l, name);
    const bool a = name.ends_with(".lora_A.weight"), b = name.ends_with(".lora_B.weight");
    if (name.empty() || (!a && !b && !adapter.config.saves(name)))
      throw ContentsError(
          "[adapter] {}: the tensor '{}' is neither lora_A nor lora_B of a linear layer, nor in "
          "modules_to_save",
          l.file->path(), excerpt(stored, 200));
    if (!a && !b) continue;
    const std::string module = module_of_adapter(name);
    if (std::find(linear.begin(), linear.end(), module) == linear.end())
      throw ContentsError(
          "[adapter] {}: '{}': the model has no linear layer {}. The adapter was made for another model",
          l.file->path(), excerpt(stored, 200), excerpt(module, 200));
    const i64 rank = adapter.config.rank_of(module);
    const Shape& w = weights.at(module + ".weight");
    const Shape want = a ? Shape{rank, w[1]} : Shape{w[0], rank};
    const Shape& have = l.entry->shape;
    if (have.size() == 2 && have[a ? 1 : 0] == want[a ? 1 : 0] && have != want)
      throw ContentsError("[adapter] {}: {} has rank {}, but {} says {}", l.file->path(),
                          excerpt(stored, 200), have[a ? 0 : 1], kAdapterConfig, rank);
    if (have != want)
      throw ContentsError(
          "[adapter] {}: {} has shape {}, but the layer needs {}. The adapter was made for another model",
          l.file->path(), excerpt(stored, 200), to_string(have), to_string(want));
    found[module] |= a ? 1 : 2;
  }
  std::vector<std::string> out;
  for (const std::string& m : linear)
    if (const auto it = found.find(m); it != found.end()) {
      if (it->second != 3)
        throw ContentsError("[adapter] {}: {} has no lora_{}", adapter.folder, m,
                            it->second == 1 ? "B" : "A");
      out.push_back(m);
    }
  if (out.empty() && adapter.config.modules_to_save.empty())
    throw ContentsError("[adapter] {} has no adapter tensors", adapter.folder);
  return out;
}

void load_adapter(ParamTree& tree, const PeftAdapter& adapter, const CanonicalName& canonical) {
  std::vector<bool> selected = trained_ones(tree.specs());
  for (size_t i = 0; i < selected.size(); ++i)  // those of a frozen model too
    selected[i] =
        selected[i] || !tree.specs()[i].adapter.weight.empty() || adapter.config.saves(tree.specs()[i].name);
  ParamTree trained = tree.subset(selected);
  const CanonicalName named = [&](const std::string& n) {
    return is_copy(n) || is_idle(tree.specs(), n, canonical) ? std::string() : canonical(n);
  };
  load_params(trained, ModelFiles::open(adapter.folder, kAdapterStem), named, {}, kAdapterPrefix);
}

}  // namespace redco::ckpt
