#include "job/assemble.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/words.h"
#include "ckpt/params_io.h"
#include "comm/group.h"
#include "train/lm_dataset.h"

namespace redco {

using Json = nlohmann::ordered_json;

namespace {

// transformers' class of each family's language model: what `architectures` of a saved config names.
const char* architecture_of(const std::string& family) {
  if (family == "gpt2") return "GPT2LMHeadModel";
  if (family == "gptj") return "GPTJForCausalLM";
  if (family == "opt") return "OPTForCausalLM";
  if (family == "mistral") return "MistralForCausalLM";
  if (family == "qwen2") return "Qwen2ForCausalLM";
  return "LlamaForCausalLM";
}

UsageError no_such_folder(const std::string& folder) {
  return UsageError(
      "[model] no such folder: {}; model.path names a Hugging Face folder with config.json and weights",
      folder);
}

std::string config_of_folder(const std::string& folder) {
  if (!is_folder(folder)) throw no_such_folder(folder);
  const std::string path = join_path(folder, "config.json");
  if (!exists(path))
    throw UsageError("[model] {} has no config.json: it is no Hugging Face model folder", folder);
  return read_file(path, 16 << 20);
}

}  // namespace

ModelSource model_source(const JobConfig& job, const Tokenizer* tokenizer, const std::string& folder) {
  ModelSource s;
  s.folder = !folder.empty() ? folder : job.model.path.value_or("");
  if (!s.folder.empty()) {
    s.config_json = config_of_folder(s.folder);
    s.origin = join_path(s.folder, "config.json");
    return s;
  }
  Json j;
  if (job.model.preset) {
    j = Json::parse(preset_config(*job.model.preset));
    s.origin = "preset " + *job.model.preset;
  } else if (job.model.arch) {
    const auto families = model_families();
    if (std::find(families.begin(), families.end(), *job.model.arch) == families.end()) {
      const std::string near = nearest(*job.model.arch, families);
      throw UsageError(
          "[model] model.arch={} ({}): no such family; {}", excerpt(*job.model.arch),
          job.origins.where("model.arch"),
          near.empty() ? fmt::format("known: {}", fmt::join(families, ", ")) : "did you mean " + near + "?");
    }
    j = {{"model_type", *job.model.arch}, {"architectures", {architecture_of(*job.model.arch)}}};
    s.origin = "model.arch " + *job.model.arch;
    if (!tokenizer && !job.model.config.count("vocab_size"))
      throw UsageError(
          "[model] model.arch={} ({}) needs model.tokenizer (`bytes` or a path), or model.vocab_size",
          *job.model.arch, job.origins.where("model.arch"));
    if (tokenizer) {
      if (!job.model.config.count("vocab_size")) j["vocab_size"] = tokenizer->vocab_size();
      const SpecialIds& ids = tokenizer->special();
      auto give = [&](const char* key, const std::optional<i32>& id) {
        if (id && !job.model.config.count(key)) j[key] = *id;
      };
      give("bos_token_id", ids.bos ? ids.bos : ids.eos);
      give("eos_token_id", ids.eos);
      give("pad_token_id", ids.pad ? ids.pad : ids.eos);
    }
  } else {
    throw UsageError("[model] give model.path (a Hugging Face folder), model.preset or model.arch");
  }
  s.config_json = j.dump();
  return s;
}

std::unique_ptr<Model> make_job_model(const JobConfig& job, const ModelSource& source) {
  return make_model(
      ModelConfig(source.config_json, source.origin, job.model.config, job.model.ignore_config_keys));
}

std::unique_ptr<Tokenizer> job_tokenizer(const JobConfig& job, const std::string& folder) {
  if (job.model.tokenizer) return load_tokenizer(*job.model.tokenizer);
  const std::string from = !folder.empty() ? folder : job.model.path.value_or("");
  if (from.empty()) return nullptr;
  if (!is_folder(from)) throw no_such_folder(from);
  for (const char* file : {"tokenizer.json", "vocab.json"})
    if (exists(join_path(from, file))) return load_tokenizer(from);
  return nullptr;
}

std::vector<CustomRule> custom_rules(const JobConfig& job) {
  std::vector<CustomRule> out;
  for (const auto& r : job.parallel.sharding_rules) out.push_back({r.match, r.spec});
  return out;
}

ParamTree make_job_params(const JobConfig& job, const ModelSource& source, const Model* model,
                          const ModelParams& params) {
  const auto sharded = shard_specs(params.specs, Context::current().mesh().mp, custom_rules(job));
  if (Context::current().world().rank() == 0)
    for (const std::string& w : sharded.sharding.warnings) warn("[sharding] {}", w);
  ParamTree tree = make_params(params, sharded.layouts);
  if (source.folder.empty() || !model) {
    initialize(tree, static_cast<u64>(job.train.seed));
  } else {
    ckpt::load_params(
        tree, ckpt::ModelFiles::open(source.folder),
        [&](const std::string& n) { return model->canonical_name(n); }, params.aliases);
  }
  return tree;
}

std::shared_ptr<const Dataset> make_lm_data(const JobConfig& job, const std::vector<std::string>& files,
                                            const Tokenizer& tokenizer, const Model& model,
                                            const std::string& what) {
  Group& world = Context::current().world();
  const i64 length = job.data.max_length.value_or(model.max_length());
  if (length > model.max_length())
    throw UsageError("[data] data.max_length={} ({}) is more than the model's {} positions", length,
                     job.origins.where("data.max_length"), model.max_length());
  check_vocab(tokenizer, model.vocab_size());
  std::string path;
  world.on_first([&] {
    path = build_token_index({.paths = files}, tokenizer, join_path(job.workdir.value_or("."), "cache"));
  });
  path = world.agree(path);
  std::shared_ptr<WindowDataset> data;
  world.together([&] {
    data = std::make_shared<WindowDataset>(TokenIndex::open(path), length);
    data->index().check_vocab(model.vocab_size());
  });
  if (world.rank() == 0)
    info("[data] {}: {} tokens in {} windows of {}; unigram entropy {:.4f} nats per token", what,
         data->index().size(), data->size(), length, data->index().unigram_entropy());
  return data;
}

EndIds end_ids(const ModelSource& source, const Tokenizer* tokenizer) {
  EndIds out;
  Json j = Json::parse(source.config_json, nullptr, false);
  if (!source.folder.empty()) {
    const std::string path = join_path(source.folder, "generation_config.json");
    if (exists(path)) {
      j = Json::parse(read_file(path, 1 << 24), nullptr, false);
      if (!j.is_object()) throw ContentsError("[model] {}: expected an object of settings", path);
    }
  }
  auto id = [&](const Json& v, const char* key) {
    if (!v.is_number_integer() || v.get<i64>() < 0 || v.get<i64>() > (i64{1} << 31) - 1)
      throw ContentsError("[model] {}: {}={}: expected a token id", source.origin, key, v.dump());
    return v.get<i32>();
  };
  if (j.contains("eos_token_id") && !j["eos_token_id"].is_null()) {
    if (j["eos_token_id"].is_array()) {
      for (const auto& v : j["eos_token_id"]) out.eos.push_back(id(v, "eos_token_id"));
    } else {
      out.eos = {id(j["eos_token_id"], "eos_token_id")};
    }
  } else if (tokenizer && tokenizer->special().eos) {
    out.eos = {*tokenizer->special().eos};
  }
  if (j.contains("pad_token_id") && !j["pad_token_id"].is_null()) {
    out.pad = std::max(0, id(j["pad_token_id"], "pad_token_id"));
  } else if (!out.eos.empty()) {
    out.pad = out.eos[0];
  }
  return out;
}

}  // namespace redco
