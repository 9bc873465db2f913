#include "assembly/training_parts.h"

#include <algorithm>

#include "assembly/job_params.h"
#include "assembly/job_pipeline.h"
#include "assembly/predict_model.h"
#include "base/file.h"
#include "comm/group.h"
#include "gguf/folder.h"

namespace redco {

Assembly assemble_training(Run& run) {
  Group& world = run.context().world();
  Assembly parts;
  world.together([&] { parts = assemble(run.job()); });
  if (const auto keys = model_config_of_data(run.job(), parts); !keys.empty()) {
    run.decide_model_config(keys);
    world.together([&] { parts = assemble(run.job()); });
  }
  return parts;
}

std::unique_ptr<Pipeline> make_training_pipeline(const JobConfig& job, const Assembly& parts,
                                                 i64 per_device) {
  TextGeneration generation;
  if (parts.tokenizer && parts.model)
    generation = eval_generation(job, parts.source, *parts.model, *parts.tokenizer,
                                 job.eval.per_device_batch_size.value_or(per_device));
  auto pipeline = make_job_pipeline(job, parts.model.get(), parts.tokenizer.get(), generation,
                                    parts.source.folder, parts.named);
  check_metrics(job, *pipeline);
  return pipeline;
}

void check_weights(const JobConfig& job, const ModelSource& source, const Model* model,
                   const ModelParams& params, const ParamStorage& storage,
                   const std::vector<NamedParts>& named) {
  const auto context = Context::meta(Mesh{1, 1}, 0);
  const Context::Use use(*context);
  make_job_params(job, source, model, params, storage, &named);
}

namespace {

// Whether there may be weights, or a part of them; else the folder holds only a config.
bool has_weights(const std::string& folder) {
  return std::ranges::any_of(list_dir(folder), [](const std::string& name) {
    return name.ends_with(".safetensors") || name.ends_with(".bin") || name.ends_with(".index.json") ||
           gguf::is_gguf(name);
  });
}

}  // namespace

std::vector<std::string> check_training_weights(const JobConfig& job, const Assembly& parts,
                                                const Pipeline& pipeline) {
  std::vector<std::string> bare;
  const auto look = [&](const ModelSource& s) {
    if (!s.folder.empty() && !has_weights(s.folder)) bare.push_back(s.folder);
  };
  look(parts.source);
  for (const NamedParts& n : parts.named) look(n.source);
  if (bare.empty())
    check_weights(job, parts.source, parts.model.get(), pipeline.all_params(), training_storage(job),
                  parts.named);
  return bare;
}

}  // namespace redco
