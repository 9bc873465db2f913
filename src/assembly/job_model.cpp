#include "assembly/job_model.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "assembly/named_parts.h"
#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/log_once.h"
#include "base/words.h"
#include "ckpt/hub.h"
#include "ckpt/params_io.h"
#include "ckpt/peft.h"
#include "ckpt/publish.h"
#include "ckpt/stored_blocks.h"
#include "ckpt/verify_checkpoint.h"
#include "comm/group.h"
#include "gguf/folder.h"
#include "models/hf_keys.h"
#include "models/plugin_families.h"
#include "pipelines/pipelines.h"
#include "train/folder_model.h"

namespace redco {

using Json = nlohmann::ordered_json;

namespace {

UsageError no_such_folder(const std::string& folder) {
  if (exists(folder))
    return UsageError("[model] {} is a file; expected a Hugging Face folder with config.json and weights",
                      folder);
  return UsageError(
      "[model] no such folder: {}; model.path must be a Hugging Face folder with config.json and weights{}",
      folder, ckpt::hub_hint(folder));
}

std::string config_of_folder(const std::string& folder) {
  if (!is_folder(folder)) throw no_such_folder(folder);
  const std::string path = join_path(folder, "config.json");
  if (!exists(path))
    throw UsageError("[model] {} has no config.json: it is not a Hugging Face model folder", folder);
  return without_python_floats(read_file(path, 16 << 20));
}

constexpr const char* kNameBase = "give model.path, the folder of the adapter's base model";

// The folders of the job's model and of its adapter; "": none. model.path may name either.
struct Folders {
  std::string base, adapter;
};
Folders folders_of(const JobConfig& job) {
  Folders out{job.model.path.value_or(""), job.model.adapter.value_or("")};
  if (!out.base.empty() && ckpt::is_adapter(out.base)) {
    if (!out.adapter.empty())
      throw UsageError("[model] model.path={} ({}) is itself an adapter's folder; remove model.adapter ({})",
                       out.base, job.origins.where("model.path"), job.origins.where("model.adapter"));
    out.adapter = std::exchange(out.base, "");
  }
  if (!out.adapter.empty()) {
    if (!is_folder(out.adapter)) throw UsageError("[model] no such folder: {}", out.adapter);
    const ckpt::PeftAdapter adapter = ckpt::read_adapter(out.adapter);
    if (out.base.empty()) out.base = ckpt::base_folder(adapter, kNameBase);
  }
  out.base = gguf::folder_of(out.base);
  return out;
}

LoraConfig lora_config(const LoraSettings& s) {
  LoraConfig l;
  l.rank = *s.rank;
  l.alpha = s.alpha.value_or(static_cast<double>(l.rank));
  l.dropout = s.dropout;
  l.use_rslora = s.use_rslora;
  l.modules_to_save = s.modules_to_save;
  // Names consist of letters, digits, `_`, `-` and dots. Any other character makes a regular expression.
  std::vector<std::string> expressions;
  for (const std::string& t : s.target_modules)
    if (t != kAllLinear && t.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                               "0123456789_.-") != std::string::npos)
      expressions.push_back(t);
  if (expressions.empty()) {
    l.target_modules = s.target_modules;
  } else if (expressions.size() == s.target_modules.size()) {
    for (const std::string& e : expressions)
      l.target_regex += l.target_regex.empty() && expressions.size() == 1
                            ? e
                            : fmt::format("{}({})", l.target_regex.empty() ? "" : "|", e);
  } else {
    throw UsageError(
        "[lora] train.lora.target_modules mixes names with the expression '{}'; give names alone, or "
        "expressions alone",
        excerpt(expressions[0]));
  }
  return l;
}

// Whether the pipeline's models have one output, whatever the data are.
bool scores_texts(const JobConfig& job) { return job.pipeline == "reward" || job.pipeline == "reranking"; }

// Sets new_head if the folder's model is for another task than the pipeline's, or has another number of
// outputs than the job asks for. The config then describes a model with a new head.
void renew_head(const JobConfig& job, ModelSource& s) {
  const PipelineInfo* info = pipeline_info(job.pipeline);
  Json j = Json::parse(s.config_json, nullptr, false);
  if (!info || !info->new_head || !j.is_object() || job.model.config.count("architectures")) return;
  const auto text = [](const Json& v) { return v.is_string() ? v.get<std::string>() : std::string(); };
  const std::string wanted = info->architecture(j.contains("model_type") ? text(j["model_type"]) : "");
  if (wanted.empty()) return;
  const auto names = j.find("architectures");
  // DeiTForImageClassificationWithTeacher is a form of DeiTForImageClassification.
  const bool same =
      names != j.end() && names->is_array() && !names->empty() && text(names->front()).starts_with(wanted);
  const auto labels = j.find("id2label");
  i64 outputs = 2;  // transformers' default
  if (labels != j.end() && labels->is_object() && !labels->empty())
    outputs = static_cast<i64>(labels->size());
  if (const auto n = j.find("num_labels"); n != j.end() && n->is_number_integer()) outputs = n->get<i64>();
  const auto asked = job.model.config.find("num_labels");
  Json number = asked == job.model.config.end() ? Json() : Json::parse(asked->second, nullptr, false);
  if (scores_texts(job)) number = 1;
  s.new_head = !same || (number.is_number_integer() && number.get<i64>() != outputs);
  if (!s.new_head) return;
  j["architectures"] = {wanted};
  for (const char* key : {"id2label", "label2id", "num_labels", "problem_type"}) j.erase(key);
  if (scores_texts(job)) j["num_labels"] = 1;
  // transformers finds the last token of a row by the padding's id. A reward counts the end token too.
  if (job.pipeline != "reward" && wanted.ends_with("ForSequenceClassification") &&
      (!j.contains("pad_token_id") || j["pad_token_id"].is_null())) {
    if (const auto end = j.find("eos_token_id"); end != j.end() && !end->is_null())
      j["pad_token_id"] = end->is_array() && !end->empty() ? end->front() : *end;
  }
  s.config_json = j.dump();
}

// model.resize_embeddings: gives the model a row for each id of the tokenizer.
void resize_embeddings(const JobConfig& job, const Tokenizer* tokenizer, ModelSource& s) {
  if (!job.model.resize_embeddings) return;
  const std::string where = "model.resize_embeddings (" + job.origins.where("model.resize_embeddings") + ")";
  if (!tokenizer) throw UsageError("[model] {}: the model has no tokenizer; set model.tokenizer", where);
  Json j = Json::parse(s.config_json, nullptr, false);
  Json* at = j.is_object() && !j.contains("vocab_size") && j.contains("text_config") ? &j["text_config"] : &j;
  if (!at->is_object() || !at->contains("vocab_size") || !(*at)["vocab_size"].is_number_integer())
    throw UsageError("[model] {}: {} has no vocab_size", where, s.origin);
  const i64 stored = (*at)["vocab_size"].get<i64>(), rows = tokenizer->vocab_size();
  if (rows <= stored) return;
  (*at)["vocab_size"] = rows;
  s.config_json = j.dump();
  s.more_rows = {stored, rows};
  log_once(LogLevel::info,
           fmt::format("[model] resize_embeddings: {} rows become {}; new rows are the mean of the others",
                       stored, rows));
}

// Takes the classes from the config.json in the adapter's folder.
void take_labels(const std::string& adapter_config, ModelSource& s) {
  const Json own = Json::parse(adapter_config, nullptr, false);
  Json j = Json::parse(s.config_json, nullptr, false);
  if (!own.is_object() || !j.is_object()) return;
  for (const char* key : {"id2label", "label2id", "num_labels", "problem_type"}) {
    j.erase(key);
    if (own.contains(key)) j[key] = own.at(key);
  }
  s.config_json = j.dump();
}

// Modules that are trained whole with the adapters, as PEFT does for sequence classification.
std::vector<std::string> head_modules(const Model& model, bool pooler) {
  std::vector<std::string> out;
  for (const ParamSpec& s : model.params().specs)
    if (is_task_head(model, s.name) && s.name.ends_with(".weight") &&
        (pooler || !s.name.starts_with(model.family() + ".")))
      out.push_back(s.name.substr(0, s.name.size() - 7));
  return out;
}

// An adapter that is trained further keeps its rank and layers.
[[noreturn]] void refuse_adapter(const std::string& folder, const std::string& why) {
  throw UsageError(
      "[lora] the adapter {} {}. Remove the key to train this adapter further, or remove the adapter to "
      "begin "
      "a new one",
      folder, why);
}

}  // namespace

bool is_task_head(const Model& model, const std::string& name) {
  const std::string family = model.family() + ".";
  if (name.starts_with(family)) return name.starts_with(family + "pooler.");
  for (const char* head : {"classifier.", "head.", "qa_outputs.", "score.", "lm_head.", "embed_out."})
    if (name.starts_with(head)) return true;
  return std::any_of(model.params().specs.begin(), model.params().specs.end(),
                     [&](const ParamSpec& s) { return s.name.starts_with(family); });
}

ModelSource training_source(const JobConfig& job, const Tokenizer* tokenizer) {
  ModelSource s = model_source(job, tokenizer);
  const LoraSettings& lora = job.train.lora;
  if (s.adapter.empty()) {
    if (!lora.rank) return s;
    s.lora = lora_config(lora);
    const PipelineInfo* info = pipeline_info(job.pipeline);
    if (info && info->new_head && !info->headless && !job.origins.given("train.lora.modules_to_save")) {
      ModelSource bare = s;
      bare.lora.reset();
      s.lora->modules_to_save = head_modules(*make_job_model(job, bare), s.new_head);
    }
    return s;
  }
  s.lora = ckpt::read_adapter(s.adapter).config;
  if (lora.rank && (s.lora->rank != *lora.rank || !s.lora->rank_pattern.empty()))
    refuse_adapter(s.adapter, fmt::format("has rank {}, but train.lora.rank is {} ({})", s.lora->rank,
                                          *lora.rank, job.origins.where("train.lora.rank")));
  if (lora.alpha) s.lora->alpha = *lora.alpha;
  if (job.origins.given("train.lora.dropout")) s.lora->dropout = lora.dropout;
  return s;
}

namespace {

// The encoder and decoder configs of an image-to-text model with random weights. The vocabulary is the
// decoder's.
void add_parts(Json& j) {
  j["encoder"] = {{"model_type", "vit"}};
  Json& decoder =
      j["decoder"] = {{"model_type", "gpt2"}, {"is_decoder", true}, {"add_cross_attention", true}};
  for (const char* key : {"vocab_size", "bos_token_id", "eos_token_id", "pad_token_id"})
    if (j.contains(key)) decoder[key] = j[key];
  j.erase("vocab_size");
  if (j.contains("bos_token_id")) j["decoder_start_token_id"] = j["bos_token_id"];
  j["is_encoder_decoder"] = true;
}

// The same of a model with an image tower and a text tower. The vocabulary is the text tower's.
void add_towers(Json& j) {
  const std::string family = j["model_type"];
  Json& text = j["text_config"] = {{"model_type", family + "_text_model"}};
  j["vision_config"] = {{"model_type", family + "_vision_model"}};
  for (const char* key : {"vocab_size", "bos_token_id", "eos_token_id", "pad_token_id"})
    if (j.contains(key)) text[key] = std::exchange(j[key], nullptr), j.erase(key);
}

}  // namespace

ModelSource model_source(const JobConfig& job, const Tokenizer* tokenizer) {
  ModelSource s;
  const Folders folders = folders_of(job);
  s.folder = folders.base;
  s.adapter = folders.adapter;
  if (!s.folder.empty()) {
    s.config_json = config_of_folder(s.folder);
    s.origin = join_path(s.folder, "config.json");
    renew_head(job, s);
    resize_embeddings(job, tokenizer, s);
    if (const std::string own = join_path(s.adapter, "config.json"); !s.adapter.empty() && exists(own))
      take_labels(read_file(own, 16 << 20), s);
    return s;
  }
  Json j;
  if (job.model.preset) {
    s.config_json = preset_config(*job.model.preset);
    s.origin = "preset " + *job.model.preset;
    renew_head(job, s);
    s.new_head = false;  // all of it is new
    j = Json::parse(s.config_json);
  } else if (job.model.arch) {
    const auto families = model_families();
    if (std::find(families.begin(), families.end(), *job.model.arch) == families.end()) {
      const std::string near = nearest(*job.model.arch, families);
      throw UsageError("[model] model.arch={} ({}): no such family; {}", excerpt(*job.model.arch),
                       job.origins.where("model.arch"),
                       near.empty() ? fmt::format("known: {}; a plugin may add others (plugins: [./x.so])",
                                                  fmt::join(families, ", "))
                                    : "did you mean " + near + "?");
    }
    j = {{"model_type", *job.model.arch}};
    // The task of a user's pipeline is unknown: the model is a language model.
    const PipelineInfo* pipeline = pipeline_info(job.pipeline);
    if (!pipeline) pipeline = pipeline_info("lm");
    std::string architecture = pipeline->architecture(*job.model.arch);
    if (const PluginFamily* f = plugin_family(*job.model.arch)) architecture = f->architecture;
    if (!architecture.empty() && !job.model.config.count("architectures"))
      j["architectures"] = {architecture};
    if (scores_texts(job)) j["num_labels"] = 1;
    s.origin = "model.arch " + *job.model.arch;
    const bool words = family_has_vocabulary(*job.model.arch);
    if (words && !tokenizer && !job.model.config.count("vocab_size"))
      throw UsageError(
          "[model] model.arch={} ({}) needs model.tokenizer (`bytes` or a path), or model.vocab_size",
          *job.model.arch, job.origins.where("model.arch"));
    if (words && tokenizer) {
      SpecialIds ids = tokenizer->special();
      i32 rows = tokenizer->vocab_size();
      // BART and Whisper never train the row of the padding token, so no other token may use it.
      const bool whisper = *job.model.arch == "whisper";
      if ((*job.model.arch == "bart" || whisper) && !ids.pad && !job.model.config.count("pad_token_id"))
        ids.pad = rows++;
      if (!job.model.config.count("vocab_size")) j["vocab_size"] = rows;
      auto give = [&](const char* key, const std::optional<i32>& id) {
        if (id && !job.model.config.count(key)) j[key] = *id;
      };
      give("bos_token_id", ids.bos ? ids.bos : ids.eos);
      give("eos_token_id", ids.eos);
      give("pad_token_id", ids.pad ? ids.pad : ids.eos);
      // Outputs of T5 and mT5 begin with the padding token, BART's with the end token.
      if (*job.model.arch == "t5" || *job.model.arch == "mt5" || *job.model.arch == "umt5")
        give("decoder_start_token_id", ids.pad ? ids.pad : ids.eos);
      if (*job.model.arch == "bart") give("decoder_start_token_id", ids.eos);
      const auto transcript = tokenizer->token_to_id("<|startoftranscript|>");
      if (whisper) give("decoder_start_token_id", transcript ? transcript : ids.eos);
    }
    if (*job.model.arch == "vision-encoder-decoder") add_parts(j);
    if (*job.model.arch == "clip" || *job.model.arch == "siglip") add_towers(j);
  } else {
    throw UsageError(
        "[model] the job names no model. Give model.path (a Hugging Face folder), model.preset or "
        "model.arch");
  }
  s.config_json = j.dump();
  return s;
}

std::vector<std::shared_ptr<Lease>> verify_source(const JobConfig& job, Group& world) {
  Folders folders;
  world.together([&] { folders = folders_of(job); });
  std::vector<std::shared_ptr<Lease>> leases;
  for (const auto& [path, name] :
       {std::pair(folders.base, "model.path"), std::pair(folders.adapter, "model.adapter")}) {
    if (path.empty()) continue;
    if (world.rank() == 0) leases.push_back(ckpt::hold_checkpoint(path));
    ckpt::verify_checkpoint(path, ckpt::Part::model,
                            path == job.predict.checkpoint ? "predict.checkpoint" : name);
  }
  return leases;
}

std::unique_ptr<Model> make_job_model(const JobConfig& job, const ModelSource& source) {
  const std::string arch =
      source.folder.empty() && !job.model.preset && job.model.arch ? "model.arch=" + *job.model.arch : "";
  auto model = make_folder_model(source.folder, {source.config_json,
                                                 source.origin,
                                                 job.model.config,
                                                 job.model.ignore_config_keys,
                                                 {job.origins, arch},
                                                 source.adapter});
  if (!job.model.weight_dtype && !source.folder.empty() && !gguf::file_in(source.folder).empty()) {
    ModelParams kept = model->params();
    ckpt::keep_blocks(kept, ckpt::ModelFiles::open(source.folder),
                      [&](const std::string& n) { return model->canonical_name(n); });
    model->set_params(std::move(kept));
  }
  const ModelParams& params = model->params();
  const std::string where =
      fmt::format("train.lora.target_modules ({})", job.origins.where("train.lora.target_modules"));
  if (!source.adapter.empty()) {
    const ckpt::PeftAdapter adapter = ckpt::read_adapter(source.adapter);
    const auto modules = ckpt::adapter_modules(
        params, adapter, [&](const std::string& n) { return model->canonical_name(n); });
    if (source.lora && job.train.lora.rank && job.origins.given("train.lora.target_modules") &&
        lora_targets(params, lora_config(job.train.lora), where) != modules)
      refuse_adapter(source.adapter,
                     fmt::format("adapts {}, which is not what {} says", fmt::join(modules, ", "), where));
    model->set_params(with_lora(params, source.lora.value_or(adapter.config), modules, source.adapter));
  } else if (source.lora) {
    model->set_params(
        with_lora(params, *source.lora, lora_targets(params, *source.lora, where), "train.lora"));
  }
  return model;
}

std::vector<std::string> model_key_problems(const JobConfig& job) {
  const PipelineInfo* info = pipeline_info(job.pipeline);
  if (!info || !info->needs_model || (!job.model.path && !job.model.preset && !job.model.arch)) return {};
  for (const auto& file : {job.model.path, job.model.adapter, job.model.tokenizer})
    if (file && *file != "bytes" && !exists(*file)) return {};  // its absence is another problem, or none
  try {
    const auto tokenizer = job_tokenizer(job);
    make_job_model(job, model_source(job, tokenizer.get()));
  } catch (const UsageError& e) {
    return {e.what()};
  } catch (const Error&) {  // a file is damaged: reported when the job is run
  }
  return {};
}

std::string job_adapter_config(const ModelSource& source, const Model& model) {
  if (!source.lora) return "";
  ckpt::PeftAdapter adapter;
  adapter.config = *source.lora;
  if (const auto hub = ckpt::hub_source(source.folder)) {
    adapter.base = hub->id;
    adapter.revision = hub->revision;
  } else if (const std::string file = gguf::source_of(source.folder); !file.empty()) {
    adapter.base = file;
  } else {
    adapter.base = std::filesystem::absolute(source.folder).lexically_normal().string();
  }
  if (model.task() == ModelTask::causal_lm) adapter.task_type = "CAUSAL_LM";
  if (model.task() == ModelTask::seq2seq_lm) adapter.task_type = "SEQ_2_SEQ_LM";
  if (model.task() == ModelTask::sequence_classification) adapter.task_type = "SEQ_CLS";
  std::vector<std::string> modules;
  for (const ParamSpec& s : model.params().specs)
    if (s.adapter.dim == 1) modules.push_back(s.name.substr(0, s.name.rfind(".lora_A.weight")));
  if (!source.adapter.empty()) adapter.config.target_regex.clear();  // `modules` names the layers
  return ckpt::adapter_config_json(adapter, model.params(), modules);
}

std::unique_ptr<Tokenizer> job_tokenizer(const JobConfig& job) {
  if (const auto& named = job.model.tokenizer) {
    if (*named != "bytes" && !exists(*named) && !ckpt::hub_hint(*named).empty())
      throw UsageError("[tokenizer] no such file or folder: {}{}", *named, ckpt::hub_hint(*named));
    return load_tokenizer(gguf::folder_of(*named, gguf::Contents::tokenizer));
  }
  if (job.model.path && !gguf::is_gguf(*job.model.path) && !is_folder(*job.model.path))
    throw no_such_folder(*job.model.path);
  const Folders folders = folders_of(job);
  for (const std::string& from : {folders.adapter, folders.base}) {
    if (from.empty()) continue;
    if (!is_folder(from)) throw no_such_folder(from);
    if (has_tokenizer(from)) return load_tokenizer(from);
  }
  return nullptr;
}

}  // namespace redco
