#include "assembly/job_pipeline.h"

#include "assembly/assembly.h"
#include "assembly/lm_data.h"
#include "base/error.h"
#include "base/log.h"
#include "comm/group.h"
#include "pipelines/pipelines.h"
#include "tensor/context.h"

namespace redco {

std::unique_ptr<Pipeline> make_job_pipeline(const JobConfig& job, const Model* model,
                                            const Tokenizer* tokenizer, const TextGeneration& generation,
                                            const std::string& folder) {
  auto pipeline = make_pipeline(job.pipeline);
  pipeline->model = model;
  pipeline->tokenizer = tokenizer;
  auto s = std::make_shared<PipelineSettings>();
  s->data = job.data;
  s->train = job.train;
  s->eval = job.eval;
  s->maml = job.maml;
  s->rl = job.rl;
  s->generation = generation;
  s->own = job.settings.json();
  s->model_folder = folder;
  pipeline->settings = std::move(s);
  return pipeline;
}

JobConfig with_data_config(JobConfig job) {
  const PipelineInfo* info = pipeline_info(job.pipeline);
  if (!info || !info->config) return job;
  Assembly parts;
  Context::current().world().together([&] { parts = assemble(job); });
  for (const auto& [key, value] : model_config_of_data(job, parts)) job.model.config.emplace(key, value);
  return job;
}

std::shared_ptr<const Dataset> open_job_data(const JobConfig& job, bool evaluation, Pipeline& pipeline,
                                             const std::string& folder, const std::string& cache) {
  const auto& files = evaluation ? job.data.eval : job.data.train;
  if (files.empty()) return nullptr;
  const DataRequest request{
      .evaluation = evaluation,
      .files = files,
      .model_folder = folder,
      .cache = cache,
      .max_length = job.data.max_length.value_or(pipeline.model ? pipeline.model->max_length() : 0)};
  return in_pipeline("open()", [&] { return pipeline.open(request); });
}

std::shared_ptr<const Dataset> make_job_data(const JobConfig& job, bool evaluation, Pipeline& pipeline,
                                             const std::string& folder, const std::string& cache) {
  if ((evaluation ? job.data.eval : job.data.train).empty()) return nullptr;
  if (auto data = open_job_data(job, evaluation, pipeline, folder, cache)) {
    if (Context::current().world().rank() == 0) {
      const std::string what = data->describe();
      info("[data] {} data: {}", evaluation ? "evaluation" : "training",
           what.empty() ? fmt::format("{} examples", data->size()) : what);
    }
    return data;
  }
  const Model* model = pipeline.model;
  Context::current().world().together([&] {
    if (!model)
      throw UsageError("[model] these data need a model: give model.path, model.preset or model.arch");
    if (!pipeline.tokenizer)
      throw UsageError(
          "[model] the {} model has no tokenizer; give model.tokenizer (`bytes` or a tokenizer's folder)",
          model->family());
  });
  return make_lm_data(lm_data_request(job, evaluation, *pipeline.tokenizer, model, folder, cache));
}

}  // namespace redco
