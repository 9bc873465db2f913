#include "assembly/training_parts.h"

#include "assembly/job_pipeline.h"
#include "assembly/predict_model.h"
#include "comm/group.h"

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

}  // namespace redco
