#include "assembly/job_pipeline.h"

#include <algorithm>

#include "assembly/assembly.h"
#include "assembly/lm_data.h"
#include "assembly/trained_job.h"
#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/words.h"
#include "comm/group.h"
#include "config/dump.h"
#include "data/builtin/builtin.h"
#include "pipeline/mixture.h"
#include "pipelines/pipelines.h"
#include "tensor/context.h"
#include "train/settings_for_pipeline.h"

namespace redco {

std::unique_ptr<Pipeline> make_job_pipeline(const JobConfig& job, const Model* model,
                                            const Tokenizer* tokenizer, const TextGeneration& generation,
                                            const std::string& folder, const std::vector<NamedParts>& named) {
  auto pipeline = make_pipeline(job.pipeline);
  pipeline->model = model;
  pipeline->tokenizer = tokenizer;
  give_models(*pipeline, named);
  if (!pipeline->origin.empty())
    pipeline->origin = fmt::format("{} ({})", job.pipeline, job.origins.where("pipeline"));
  auto s = std::make_shared<PipelineSettings>();
  s->data = job.data;
  s->train = for_pipeline(job.train);
  s->eval = for_pipeline(job.eval);
  static_cast<AlgorithmSections&>(*s) = job;
  s->generation = generation;
  s->own = {job.settings.json(), job.origins};
  if (tokenizer && (!pipeline_info(job.pipeline) || pipeline_info(job.pipeline)->renders_chats))
    if (auto chat = job_chat_template(job, *tokenizer, folder))
      s->chat_template = std::make_shared<const ChatTemplate>(std::move(*chat));
  s->weights_folder = folder;
  s->model_folder = trained_model_folder(job).value_or(folder);
  pipeline->settings = std::move(s);
  return pipeline;
}

void check_metrics(const JobConfig& job, const Pipeline& pipeline) {
  const std::vector<std::string>& names = job.eval.metrics;
  const auto named = std::ranges::find_if(names, [](const std::string& m) { return m != "loss"; });
  if (pipeline_info(job.pipeline) || named == names.end()) return;
  if (in_pipeline(pipeline, "measures_outputs()", [&] { return pipeline.measures_outputs(); })) return;
  throw UsageError(
      "[eval] eval.metrics={} ({}): this pipeline has no metrics to select, because measures_outputs() is "
      "false. Remove the key, or let measures_outputs() return true",
      excerpt(*named), job.origins.where("eval.metrics"));
}

JobConfig with_data_config(JobConfig job) {
  const PipelineInfo* info = pipeline_info(job.pipeline);
  if (!info || !info->config) return job;
  Assembly parts;
  Context::current().world().together([&] { parts = assemble(job); });
  for (const auto& [key, value] : model_config_of_data(job, parts)) job.model.config.emplace(key, value);
  return job;
}

namespace {

// Of all that an example may depend on besides its file.
std::string example_fingerprint(const JobConfig& job, const Pipeline& pipeline) {
  JobConfig copy = job;  // visit() hands out mutable members
  DataSettings& d = copy.data;
  for (auto* files : {&d.train, &d.eval}) files->clear();
  d.mixture.clear();
  d.eval_sets.clear();
  d.cache.reset();
  d.n_workers.reset();
  std::string text = dump_settings(settings_of(d)) + job.settings.json();
  text += pipeline.origin.empty() ? job.pipeline : read_file(job.pipeline, i64{1} << 30);
  text += pipeline.code_hash;
  if (pipeline.tokenizer) text += pipeline.tokenizer->fingerprint();
  if (pipeline.tokenizer) text += "prompts 3";  // raised when a prompt could give other tokens
  if (const auto& chat = pipeline.settings->chat_template) text += chat->source();
  if (pipeline.model) text += pipeline.model->config_json();
  return hash128(text).hex();
}

}  // namespace

std::shared_ptr<const Dataset> open_source(const JobConfig& job, const DataSource& source, bool evaluation,
                                           Pipeline& pipeline, const std::string& folder,
                                           const std::string& cache) {
  const DataRequest request{
      .evaluation = evaluation,
      .files = source.files,
      .weights_folder = folder,
      .cache = cache,
      .skip_bad = job.data.skip_bad,
      .max_length = job.data.max_length.value_or(pipeline.model ? pipeline.model->max_length() : 0),
      .fingerprint = example_fingerprint(job, pipeline)};
  return in_pipeline(pipeline, "open()", [&] { return pipeline.open(request); });
}

namespace {

void describe_source(const DataSource& source, bool evaluation, const Dataset& data) {
  if (Context::current().world().rank() != 0) return;
  const std::string what = data.describe();
  info("[data] {}: {}", source_name(source, evaluation),
       what.empty() ? fmt::format("{} examples", data.size()) : what);
}

// The data that a pipeline opens although the job names no files; null: there are none.
std::shared_ptr<const Dataset> own_data(const JobConfig& job, bool evaluation, Pipeline& pipeline,
                                        const std::string& folder, const std::string& cache) {
  if (!in_pipeline(pipeline, "opens_own_data()", [&] { return pipeline.opens_own_data(); })) return nullptr;
  auto data = open_source(job, {}, evaluation, pipeline, folder, cache);
  if (data) describe_source({}, evaluation, *data);
  return data;
}

std::shared_ptr<const Dataset> make_source(const JobConfig& job, const DataSource& source, bool evaluation,
                                           Pipeline& pipeline, const std::string& folder,
                                           const std::string& cache) {
  if (auto data = open_source(job, source, evaluation, pipeline, folder, cache)) {
    describe_source(source, evaluation, *data);
    return data;
  }
  const Model* model = pipeline.model;
  Context::current().world().together([&] {
    if (!pipeline.tokenizer)
      throw UsageError(
          "[model] {} has no tokenizer for the texts of {}. Give model.tokenizer (`bytes` or a tokenizer's "
          "folder)",
          model ? "the " + model->family() + " model" : "the job", source_name(source, evaluation));
  });
  return make_lm_data(lm_data_request(job, source, evaluation, *pipeline.tokenizer, model, folder, cache));
}

}  // namespace

std::shared_ptr<const Dataset> make_training_data(const JobConfig& job, Pipeline& pipeline,
                                                  const std::string& folder, const std::string& cache) {
  std::vector<Mixture::Source> sources;
  for (const DataSource& s : job.data.sources(false))
    sources.push_back({s.name, s.weight, make_source(job, s, false, pipeline, folder, cache)});
  if (sources.empty()) return own_data(job, false, pipeline, folder, cache);
  if (job.data.mixture.empty()) return sources[0].data;
  Group& world = Context::current().world();
  std::shared_ptr<const Dataset> mixture;
  world.together(
      [&] { mixture = std::make_shared<Mixture>(std::move(sources), static_cast<u64>(job.train.seed)); });
  if (world.rank() == 0) info("[data] training data: {}", mixture->describe());
  return mixture;
}

std::vector<EvalSet> make_eval_sets(const JobConfig& job, Pipeline& pipeline, const std::string& folder,
                                    const std::string& cache) {
  const std::vector<std::string> trained = job.data.files(false);
  for (const std::string& f : job.data.files(true))
    if (!is_builtin(f) && std::ranges::find(trained, f) != trained.end() &&
        Context::current().world().rank() == 0)
      warn("[data] {} is both training and evaluation data, so the evaluation does not measure new data", f);
  std::vector<EvalSet> sets;
  for (const DataSource& s : job.data.sources(true))
    sets.push_back({make_source(job, s, true, pipeline, folder, cache), s.name});
  if (sets.empty())
    if (auto data = own_data(job, true, pipeline, folder, cache)) sets.push_back({std::move(data), ""});
  return sets;
}

}  // namespace redco
