#include "job/named_models.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/words.h"
#include "ckpt/hub.h"
#include "config/bind.h"
#include "nn/param_tree.h"
#include "pipelines/pipelines.h"

namespace redco {

namespace {

using OrderedJson = nlohmann::ordered_json;

// The spelling of config/: a job that is written and read again has the same text.
std::string entry_text(const OrderedJson& j) {
  std::string s;
  if (j.is_array()) {
    for (const OrderedJson& e : j) s += (s.empty() ? "" : ", ") + entry_text(e);
    return "[" + s + "]";
  }
  if (!j.is_object()) return j.dump();
  for (const auto& [key, value] : j.items())
    s += (s.empty() ? "" : ", ") + OrderedJson(key).dump() + ": " + entry_text(value);
  return "{" + s + "}";
}

// `place`: of the entry in the job file.
NamedModelSettings read_entry(const std::string& name, const std::string& json, const std::string& place,
                              Paths paths) {
  NamedModelSettings m;
  m.name = name;
  if (name.empty() || name == kExtra ||
      name.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") !=
          std::string::npos)
    throw UsageError(
        "models.{} ({}): expected a name of letters, digits, _ and -, and not '{}', because the model's folder in "
        "checkpoints is models/NAME. Use another name",
        excerpt(name), place, kExtra);
  try {
    load_settings(settings_of(m), {{"models." + name, json}}, {}, paths);
  } catch (const UsageError& e) {
    throw UsageError("models.{} ({}): {}", name, place, e.what());
  }
  if (!m.model.path && !m.model.preset && !m.model.arch)
    throw UsageError("models.{} ({}): path, preset or arch is missing; set one of them", name, place);
  return m;
}

}  // namespace

void NamedModelSettings::visit(SettingsVisitor& v) {
  v.field(
      "frozen", frozen,
      "the model is not trained: no gradients, no optimizer state, not saved in checkpoints; false: it is "
      "trained and saved in models/NAME of each checkpoint");
  v.items("sharding_rules", sharding_rules, "sharding rules of this model, as parallel.sharding_rules");
  model.visit(v);
}

std::vector<NamedModelSettings> named_models(const JobConfig& job) {
  std::vector<NamedModelSettings> out;
  for (const auto& [name, json] : job.models.values)
    out.push_back(read_entry(name, json, job.origins.where("models." + name), Paths::as_given));
  return out;
}

void add_reference(JobConfig& job) {
  const PipelineInfo* info = pipeline_info(job.pipeline);
  const ModelSettings& m = job.model;
  if (!info || !info->reference || !job.dpo.has_reference() || job.models.values.count("reference")) return;
  if (job.train.lora.rank || m.adapter || (!m.path && !m.preset && !m.arch)) return;
  OrderedJson j = OrderedJson::object();
  for (const auto& [key, value] : {std::pair{"path", m.path}, std::pair{"preset", m.preset},
                                   std::pair{"arch", m.arch}, std::pair{"tokenizer", m.tokenizer}})
    if (value) j[key] = *value;
  ModelSettings copy = m;  // visit() hands out mutable members
  for (const Setting& s : settings_of(copy))
    if (s.name == "weight_dtype") j[s.name] = std::get<std::string>(s.get().at(0));
  if (!m.ignore_config_keys.empty()) j["ignore_config_keys"] = m.ignore_config_keys;
  for (const auto& [key, value] : m.config) j[key] = OrderedJson::parse(value);
  job.models.values["reference"] = entry_text(j);
}

void expand_named_models(JobConfig& job) {
  for (auto& [name, json] : job.models.values) {
    NamedModelSettings m = read_entry(name, json, job.origins.where("models." + name), Paths::expanded);
    OrderedJson j = OrderedJson::parse(json);
    for (const auto& [key, value] : {std::pair{"path", m.model.path}, std::pair{"adapter", m.model.adapter},
                                     std::pair{"tokenizer", m.model.tokenizer}})
      if (value) j[key] = *value == "bytes" ? *value : ckpt::local_source(*value);
    json = entry_text(j);
  }
}

JobConfig job_of_model(const JobConfig& job, const NamedModelSettings& named) {
  JobConfig out = job;
  out.model = named.model;
  out.models = {};
  // A reward model is one of pipeline reward: an adapter's base gets its head.
  if (job.pipeline == "grpo" && named.name == "reward") out.pipeline = "reward";
  out.train.lora = {};
  out.parallel.sharding_rules = named.sharding_rules;
  out.predict.checkpoint.reset();
  return out;
}

void set_named_path(JobConfig& job, const std::string& name, const std::string& path) {
  std::string& json = job.models.values.at(name);
  OrderedJson j = OrderedJson::parse(json);
  j["path"] = path;
  for (const char* key : {"preset", "arch", "adapter", "tokenizer"}) j.erase(key);
  json = entry_text(j);
}

}  // namespace redco
