#include "verify/expected.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "verify/sentences.h"

namespace redco {

namespace {

using Json = nlohmann::json;

Json read_json(const std::string& path) {
  try {
    return Json::parse(read_file(path, 64 << 20));
  } catch (const Json::exception& e) {
    throw ContentsError("[verify] {}: {}", path, e.what());
  }
}

// A member of a JSON object; a wrong type is an error that names the file.
template <class T>
T member(const Json& j, const char* key, T fallback, const std::string& path) {
  if (!j.is_object() || !j.contains(key) || j.at(key).is_null()) return fallback;
  try {
    return j.at(key).get<T>();
  } catch (const Json::exception& e) {
    throw ContentsError("[verify] {}: {}: {}", path, key, e.what());
  }
}

std::vector<Expected::Generation> usual_generations() {
  GenerationSettings greedy, beams, early, penalized;
  for (GenerationSettings* g : {&greedy, &beams, &early, &penalized}) g->max_new_tokens = 24;
  for (GenerationSettings* g : {&beams, &early, &penalized}) g->num_beams = 4;
  early.early_stopping = "true";
  penalized.length_penalty = 2;
  penalized.no_repeat_ngram_size = 3;
  return {{"greedy_ids", greedy},
          {"beam4_ids", beams},
          {"beam4_early_ids", early},
          {"beam4_lp2_ng3_ids", penalized}};
}

// {"max_new_tokens": 24, "beam4_ids": {"num_beams": 4, "early_stopping": true}, ...}
std::vector<Expected::Generation> read_generations(const Json& j, const std::string& path) {
  if (!j.is_object()) throw ContentsError("[verify] {}: generation: expected an object", path);
  std::vector<Expected::Generation> out;
  for (const auto& [name, given] : j.items()) {
    if (!given.is_object()) continue;
    Expected::Generation g{name, {}};
    GenerationSettings& s = g.settings;
    s.max_new_tokens = member<i64>(j, "max_new_tokens", 24, path);
    for (const auto& [key, value] : given.items()) {
      if (key == "num_beams")
        s.num_beams = member<i64>(given, "num_beams", 1, path);
      else if (key == "max_new_tokens")
        s.max_new_tokens = member<i64>(given, "max_new_tokens", 24, path);
      else if (key == "min_new_tokens")
        s.min_new_tokens = member<i64>(given, "min_new_tokens", 0, path);
      else if (key == "length_penalty")
        s.length_penalty = member<double>(given, "length_penalty", 1, path);
      else if (key == "no_repeat_ngram_size")
        s.no_repeat_ngram_size = member<i64>(given, "no_repeat_ngram_size", 0, path);
      else if (key == "repetition_penalty")
        s.repetition_penalty = member<double>(given, "repetition_penalty", 1, path);
      else if (key == "early_stopping")
        s.early_stopping = value.is_boolean() ? (value.get<bool>() ? "true" : "false")
                                              : member<std::string>(given, "early_stopping", "false", path);
      else
        throw ContentsError("[verify] {}: generation.{}.{}: this setting is not supported", path, name, key);
    }
    if (s.num_beams < 1 || s.num_beams > 1024 || s.max_new_tokens < 1 || s.max_new_tokens > (1 << 20))
      throw ContentsError("[verify] {}: generation.{}: num_beams={} or max_new_tokens={} is out of range",
                          path, name, s.num_beams, s.max_new_tokens);
    out.push_back(std::move(g));
  }
  return out;
}

}  // namespace

std::string read_text(const std::string& path) { return read_file(path, 64 << 20); }

Expected Expected::open(const std::string& folder, const std::string& file) {
  Expected e;
  e.path_ = file.empty() ? join_path(folder, "expected.safetensors") : file;
  if (file.empty() && !exists(e.path_))
    throw UsageError(
        "[verify] {} has no expected.safetensors, the results of another framework that `redco verify` compares with. "
        "Give the file: `redco verify {} EXPECTED.safetensors` (docs/verify.md explains it)",
        folder, folder);
  e.generations_ = usual_generations();
  e.file_ = std::make_shared<ckpt::SafetensorsFile>(ckpt::SafetensorsFile::open(e.path_));
  const std::string beside = parent_path(e.path_);
  std::string tolerances = join_path(beside, "tolerances.json");
  const std::string fixture = join_path(beside, "fixture.json");
  if (exists(fixture)) {
    const Json j = read_json(fixture);
    if (!j.is_object()) throw ContentsError("[verify] {}: expected an object", fixture);
    e.task_ = member<std::string>(j, "task", "", fixture);
    const auto same = member<std::string>(j, "same_inputs_as", "", fixture);
    if (same.find('/') != std::string::npos || same == "..")
      throw ContentsError("[verify] {}: same_inputs_as='{}' is not the name of a folder", fixture, same);
    const std::string other = join_path(join_path(beside, ".."), same);
    if (!same.empty() && !exists(tolerances)) tolerances = join_path(other, "tolerances.json");
    if (j.contains("optimizer") && j.at("optimizer").is_object()) {
      const Json& o = j.at("optimizer");
      const auto name = member<std::string>(o, "name", "AdamW", fixture);
      if (name != "AdamW")
        throw ContentsError("[verify] {}: optimizer '{}' is not supported; supported: AdamW", fixture, name);
      Optimizer& p = e.optimizer_;
      p.lr = member(o, "lr", p.lr, fixture);
      const auto betas = member<std::vector<double>>(o, "betas", {p.beta1, p.beta2}, fixture);
      if (betas.size() != 2)
        throw ContentsError("[verify] {}: optimizer.betas has {} entries, expected 2", fixture, betas.size());
      p.beta1 = betas[0];
      p.beta2 = betas[1];
      p.eps = member(o, "eps", p.eps, fixture);
      p.weight_decay = member(o, "weight_decay", p.weight_decay, fixture);
      p.steps = member(o, "steps", p.steps, fixture);
      if (p.steps < 1 || p.steps > 100)
        throw ContentsError("[verify] {}: optimizer.steps={}, expected 1 to 100", fixture, p.steps);
      const double clip = member(o, "clip", 0.0, fixture);
      if (clip > 0) p.clip = clip;
    }
    if (j.contains("generation")) e.generations_ = read_generations(j.at("generation"), fixture);
  }
  if (exists(tolerances)) {
    const Json j = read_json(tolerances);
    e.has_tolerances_ = true;
    if (j.contains("float32_vs_float64"))
      for (const auto& [name, t] : j.at("float32_vs_float64").items())
        e.tolerances_[name] = {member(t, "max_abs_diff", 0.0, tolerances),
                               member(t, "max_abs", 0.0, tolerances)};
    if (j.contains("adamw_by_first_gradient")) {
      const Json& b = j.at("adamw_by_first_gradient");
      auto bucket = [&](const char* name) -> std::optional<double> {
        if (!b.contains(name)) return std::nullopt;
        return member(b.at(name), "max_abs_diff", 0.0, tolerances);
      };
      e.adamw_large_ = bucket("g>=1e-3");
      e.adamw_small_ = bucket("1e-5<=g<1e-3");
    }
  }
  return e;
}

std::vector<std::string> Expected::names() const {
  std::vector<std::string> out;
  std::map<std::string, std::string> renamed;  // by the names in the file
  for (const auto& [name, stored] : stored_) renamed[stored] = name;
  for (const auto& t : file_->entries()) {
    const auto at = renamed.find(t.name);
    out.push_back(at == renamed.end() ? t.name : at->second);
  }
  return out;
}
void Expected::rename_parameters(const CanonicalName& canonical) {
  for (const auto& t : file_->entries())
    for (const std::string kind : {"grad.", "adamw."}) {
      if (!t.name.starts_with(kind)) continue;
      const std::string name = canonical(t.name.substr(kind.size()));
      if (name.empty() || kind + name == t.name || file_->find(kind + name)) continue;
      stored_[kind + name] = t.name;
    }
}

const std::string& Expected::stored(const std::string& name) const {
  const auto at = stored_.find(name);
  return at == stored_.end() ? name : at->second;
}

bool Expected::has(const std::string& name) const { return file_->find(stored(name)) != nullptr; }
bool Expected::any_with(const std::string& prefix) const {
  for (const auto& t : file_->entries())
    if (t.name.starts_with(prefix)) return true;
  return false;
}
Shape Expected::shape(const std::string& name) const { return file_->at(stored(name)).shape; }
std::vector<double> Expected::values(const std::string& name) const {
  return file_->read<double>(file_->at(stored(name)));
}

std::vector<i32> Expected::ids(const std::string& name) const {
  const auto& t = file_->at(name);
  if (t.shape.size() != 2)
    throw ContentsError("[verify] {}: '{}' has shape {}, expected (rows, tokens)", path_, name,
                        to_string(t.shape));
  return file_->read<i32>(t);
}

std::vector<i32> Expected::row_ids(const std::string& name) const {
  const auto& t = file_->at(name);
  if (t.shape.size() != 1)
    throw ContentsError("[verify] {}: '{}' has shape {}, expected one id per row", path_, name,
                        to_string(t.shape));
  return file_->read<i32>(t);
}

void Expected::check_ids(const std::string& name, i64 vocab_size) const {
  for (i32 id : ids(name))
    if (id < 0 || id >= vocab_size)
      throw ContentsError("[verify] {}: '{}' contains id {}, but the model's vocabulary has {} tokens", path_,
                          name, id, vocab_size);
}

bool Expected::is_input(const std::string& whole) const {
  const std::string name = whole.starts_with("positive_") ? whole.substr(9) : whole;
  return name == "input_ids" || name == "attention_mask" || name == "labels" || name == "gen_input_ids" ||
         name == "gen_attention_mask" || name == "padded_input_ids" || name == "padded_attention_mask" ||
         name == "decoder_input_ids" || name == "decoder_attention_mask" || name == "token_type_ids" ||
         name == "pixel_values" || name == "image_uint8" || name == "features" || name == "input_features";
}

void Expected::check_task(const std::string& supported) const {
  const bool sentences = supported == name_of(ModelTask::feature_extraction) && task_ == kSentenceTask;
  if (!task_.empty() && task_ != supported && !sentences)
    throw ContentsError("[verify] {}: task '{}' is not supported; supported: {}",
                        join_path(parent_path(path_), "fixture.json"), task_, supported);
}

double Expected::tolerance(const std::string& name) const {
  const auto it = tolerances_.find(stored(name));
  if (it != tolerances_.end()) return std::max(10 * it->second.max_abs_diff, 1e-6 * it->second.max_abs);
  double largest = 0;
  for (double v : values(name)) largest = std::max(largest, std::fabs(v));
  return 1e-5 * largest;
}

double Expected::adamw_tolerance(double g) const {
  const auto& bucket = g >= 1e-3 ? adamw_large_ : adamw_small_;
  return bucket ? 10 * *bucket : 1e-5;
}

}  // namespace redco
