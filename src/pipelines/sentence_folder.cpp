#include "pipelines/sentence_folder.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/strict_json.h"
#include "base/words.h"

namespace redco {

namespace {

using SentenceJson = nlohmann::ordered_json;

constexpr i64 kMostSentenceBytes = 1 << 20;
constexpr const char *kModules = "modules.json", *kSentenceConfig = "config_sentence_transformers.json";

// Keys of 1_Pooling/config.json in older versions, in the order in which the embeddings are concatenated.
constexpr std::pair<const char*, const char*> kPoolingKeys[] = {
    {"pooling_mode_cls_token", "cls"},
    {"pooling_mode_max_tokens", "max"},
    {"pooling_mode_mean_tokens", "mean"},
    {"pooling_mode_mean_sqrt_len_tokens", "mean_sqrt_len_tokens"},
    {"pooling_mode_weightedmean_tokens", "weightedmean"},
    {"pooling_mode_lasttoken", "lasttoken"}};

nlohmann::json read_object(const std::string& path) {
  nlohmann::json j = ckpt::read_strict_json(path, kMostSentenceBytes);
  if (!j.is_object()) throw ContentsError("[model] {}: expected an object of settings", path);
  return j;
}

// The value of a key with a type; null counts as absent.
template <class T>
std::optional<T> member(const nlohmann::json& j, const std::string& key, const std::string& path,
                        const char* what) {
  const auto it = j.find(key);
  if (it == j.end() || it->is_null()) return std::nullopt;
  const bool right = std::is_same_v<T, bool>  ? it->is_boolean()
                     : std::is_same_v<T, i64> ? it->is_number_integer()
                                              : it->is_string();
  if (!right) throw ContentsError("[model] {}: {} is {}; expected {}", path, key, excerpt(it->dump()), what);
  return it->get<T>();
}

void read_pooling(const std::string& path, SentenceFolder& out) {
  const nlohmann::json j = read_object(path);
  if (const auto mode = j.find("pooling_mode"); mode != j.end() && !mode->is_null()) {
    for (const auto& one : mode->is_array() ? *mode : nlohmann::json::array({*mode}))
      out.pooling.push_back(one.is_string() ? one.get<std::string>() : one.dump());
  } else {
    for (const auto& [key, name] : kPoolingKeys)
      if (member<bool>(j, key, path, "true or false").value_or(false)) out.pooling.emplace_back(name);
    if (out.pooling.empty()) out.pooling = {"mean"};
  }
  for (const std::string& mode : out.pooling)
    if (std::ranges::find(pooling_modes(), mode) == pooling_modes().end())
      throw ContentsError("[model] {}: no pooling mode '{}'; known are {}", path, excerpt(mode),
                          fmt::join(pooling_modes(), ", "));
  out.include_prompt = member<bool>(j, "include_prompt", path, "true or false").value_or(true);
}

// Classes of torch by the last part of their names, and redco's names.
constexpr std::pair<const char*, const char*> kDenseActivations[] = {
    {"linear.Identity", "linear"}, {"activation.Tanh", "tanh"},       {"activation.ReLU", "relu"},
    {"activation.GELU", "gelu"},   {"activation.Sigmoid", "sigmoid"}, {"activation.SiLU", "silu"}};

DenseModule read_dense(const std::string& folder, const std::string& at) {
  const std::string path = join_path(join_path(folder, at), "config.json");
  const nlohmann::json j = read_object(path);
  const auto size = [&](const char* key) {
    const i64 n = member<i64>(j, key, path, "a whole number").value_or(0);
    if (n < 1 || n > (1 << 24))
      throw ContentsError("[model] {}: {} is {}; expected a number of features", path, key, n);
    return n;
  };
  DenseModule d{.folder = at, .in = size("in_features"), .out = size("out_features")};
  d.bias = member<bool>(j, "bias", path, "true or false").value_or(true);
  const std::string given = member<std::string>(j, "activation_function", path, "a text")
                                .value_or("torch.nn.modules.activation.Tanh");
  const auto* const known = std::ranges::find_if(
      kDenseActivations, [&](const auto& a) { return given == std::string("torch.nn.modules.") + a.first; });
  if (known == std::end(kDenseActivations))
    throw ContentsError(
        "[model] {}: activation_function is {}; supported are Identity, Tanh, ReLU, GELU, Sigmoid and SiLU of "
        "torch.nn.modules",
        path, excerpt(given));
  d.activation = known->second;
  if (member<bool>(j, "use_residual", path, "true or false").value_or(false))
    throw ContentsError("[model] {}: use_residual is true; redco supports false", path);
  for (const char* key : {"module_input_name", "module_output_name"})
    if (const std::string name = member<std::string>(j, key, path, "a text").value_or("sentence_embedding");
        name != "sentence_embedding")
      throw ContentsError("[model] {}: {} is {}; redco supports sentence_embedding", path, key,
                          excerpt(name));
  return d;
}

// path: of modules.json.
void add_dense(const std::string& folder, const std::string& at, const std::string& path,
               SentenceFolder& out) {
  if (at.empty() || at.find('/') != std::string::npos || at == "models" || at == "training")
    throw ContentsError("[model] {}: the path of a Dense module is '{}'; expected a folder such as 2_Dense",
                        path, excerpt(at));
  DenseModule d = read_dense(folder, at);
  for (const DenseModule& before : out.dense)
    if (before.folder == at) throw ContentsError("[model] {}: two modules are in the folder {}", path, at);
  if (!out.dense.empty() && d.in != out.dense.back().out)
    throw ContentsError("[model] {}: {} has in_features={}, but the module before gives {} features", path,
                        at, d.in, out.dense.back().out);
  out.dense.push_back(std::move(d));
}

// The class of a module: the last part of its type.
std::string class_of(const std::string& type) { return type.substr(type.rfind('.') + 1); }

void read_modules(const std::string& folder, SentenceFolder& out) {
  const std::string path = join_path(folder, kModules);
  const nlohmann::json modules = ckpt::read_strict_json(path, kMostSentenceBytes);
  if (!modules.is_array() || modules.empty())
    throw ContentsError("[model] {}: expected a list of modules", path);
  std::vector<std::string> order, wanted = {"Transformer", "Pooling"}, folders;
  for (const auto& module : modules) {
    if (!module.is_object()) throw ContentsError("[model] {}: expected a list of objects", path);
    const std::string type = member<std::string>(module, "type", path, "a text").value_or("");
    const std::string at = member<std::string>(module, "path", path, "a text").value_or("");
    order.push_back(class_of(type));
    folders.push_back(at);
    if (at.find("..") != std::string::npos || at.starts_with('/'))
      throw ContentsError("[model] {}: the path {} leads out of the folder", path, excerpt(at));
    if (order.back() == "Transformer" && !at.empty())
      throw ContentsError(
          "[model] {}: the model is in the folder {}, and pipeline embedding reads it only in the folder of "
          "modules.json. Move its files there, and set the path of the module to \"\"",
          path, excerpt(at));
    if (order.back() == "Dense") wanted.emplace_back("Dense");
  }
  out.normalize = order.back() == "Normalize";
  if (out.normalize) wanted.emplace_back("Normalize");
  if (order != wanted)
    throw ContentsError(
        "[model] {}: the modules are {}; pipeline embedding supports Transformer, Pooling and, after them, "
        "Dense and Normalize",
        path, excerpt(fmt::format("{}", fmt::join(order, ", "))));
  read_pooling(join_path(join_path(folder, folders[1]), "config.json"), out);
  for (size_t i = 2; i < order.size(); ++i)
    if (order[i] == "Dense") add_dense(folder, folders[i], path, out);
}

void read_prompts(const std::string& path, SentenceFolder& out) {
  const nlohmann::json j = read_object(path);
  out.config = read_file(path, kMostSentenceBytes);
  if (const auto prompts = j.find("prompts"); prompts != j.end() && !prompts->is_null()) {
    if (!prompts->is_object()) throw ContentsError("[model] {}: prompts: expected an object of texts", path);
    for (const auto& [name, text] : prompts->items())
      out.prompts[name] = member<std::string>(*prompts, name, path, "a text").value_or("");
  }
  if (const auto name = member<std::string>(j, "default_prompt_name", path, "a text")) {
    if (!out.prompts.count(*name))
      throw ContentsError("[model] {}: default_prompt_name is '{}', but prompts has no such name", path,
                          excerpt(*name));
    out.default_prompt_name = *name;
  }
  const std::string similarity =
      member<std::string>(j, "similarity_fn_name", path, "a text").value_or("cosine");
  out.dot_product = similarity == "dot" || similarity == "dot_score";
  if (!out.dot_product && similarity != "cosine" && similarity != "cos_sim")
    throw ContentsError("[model] {}: similarity_fn_name is '{}'; supported are cosine and dot", path,
                        excerpt(similarity));
}

std::string text_of(const SentenceJson& j) {
  return j.dump(2, ' ', false, SentenceJson::error_handler_t::replace) + "\n";
}

}  // namespace

const std::vector<std::string>& pooling_modes() {
  static const std::vector<std::string> names = {"mean",         "cls", "lasttoken",
                                                 "weightedmean", "max", "mean_sqrt_len_tokens"};
  return names;
}

std::string SentenceFolder::prompt_of(const std::vector<std::string>& names) const {
  for (const std::string& name : names)
    if (const auto it = prompts.find(name); it != prompts.end()) return it->second;
  return "";
}

i64 SentenceFolder::width(i64 hidden) const {
  return dense.empty() ? hidden * static_cast<i64>(pooling.size()) : dense.back().out;
}

std::map<std::string, std::string> SentenceFolder::files(i64 width) const {
  SentenceJson modules = SentenceJson::array();
  const auto add = [&](const std::string& folder, const char* type) {
    const std::size_t i = modules.size();
    modules.push_back({{"idx", i},
                       {"name", std::to_string(i)},
                       {"path", folder},
                       {"type", fmt::format("sentence_transformers.models.{}", type)}});
  };
  add("", "Transformer");
  add("1_Pooling", "Pooling");
  std::map<std::string, std::string> out;
  for (const DenseModule& d : dense) {
    add(d.folder, "Dense");
    const auto* const known =
        std::ranges::find_if(kDenseActivations, [&](const auto& a) { return d.activation == a.second; });
    const SentenceJson j = {{"in_features", d.in},
                            {"out_features", d.out},
                            {"bias", d.bias},
                            {"activation_function", std::string("torch.nn.modules.") + known->first}};
    out[d.folder + "/config.json"] = text_of(j);
  }
  if (normalize) add(fmt::format("{}_Normalize", modules.size()), "Normalize");
  // Older versions know only the booleans, which can't express another order of the modes.
  SentenceJson pool = {{"word_embedding_dimension", width}};
  std::vector<std::string> in_order;
  for (const auto& [key, name] : kPoolingKeys) {
    pool[key] = std::ranges::find(pooling, name) != pooling.end();
    if (pool[key]) in_order.emplace_back(name);
  }
  if (in_order != pooling) pool = {{"embedding_dimension", width}, {"pooling_mode", pooling}};
  pool["include_prompt"] = include_prompt;
  SentenceJson lengths = {{"max_seq_length", max_seq_length ? SentenceJson(*max_seq_length) : SentenceJson()},
                          {"do_lower_case", lower_case}};
  SentenceJson own = config.empty() ? SentenceJson::object() : SentenceJson::parse(config);
  own["prompts"] = SentenceJson::object();
  for (const auto& [name, text] : prompts) own["prompts"][name] = text;
  own["default_prompt_name"] =
      default_prompt_name.empty() ? SentenceJson() : SentenceJson(default_prompt_name);
  own["similarity_fn_name"] = dot_product ? "dot" : "cosine";
  out[kModules] = text_of(modules);
  out["1_Pooling/config.json"] = text_of(pool);
  out["sentence_bert_config.json"] = text_of(lengths);
  out[kSentenceConfig] = text_of(own);
  return out;
}

SentenceFolder read_sentence_folder(const std::string& folder) {
  SentenceFolder out;
  if (folder.empty()) return out;
  out.found = exists(join_path(folder, kModules));
  if (out.found) read_modules(folder, out);
  if (const std::string path = join_path(folder, "sentence_bert_config.json"); exists(path)) {
    const nlohmann::json j = read_object(path);
    out.max_seq_length = member<i64>(j, "max_seq_length", path, "a whole number");
    if (out.max_seq_length && *out.max_seq_length < 1)
      throw ContentsError("[model] {}: max_seq_length is {}; expected 1 or more", path, *out.max_seq_length);
    out.lower_case = member<bool>(j, "do_lower_case", path, "true or false").value_or(false);
  }
  if (const std::string path = join_path(folder, kSentenceConfig); exists(path)) read_prompts(path, out);
  return out;
}

}  // namespace redco
