#include "commands/validate.h"

#include <nlohmann/json.hpp>

#include "assembly/assembly.h"
#include "assembly/job_model.h"
#include "assembly/job_params.h"
#include "assembly/job_pipeline.h"
#include "assembly/predict_model.h"
#include "assembly/training_parts.h"
#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/words.h"
#include "commands/plan_request.h"
#include "data/builtin/builtin.h"
#include "data/text/token_index.h"
#include "job/prepare_job.h"
#include "pipelines/pipelines.h"
#include "run/run.h"
#include "train/prefetch.h"
#include "train/step.h"

namespace redco {

namespace {

using Json = nlohmann::ordered_json;

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> out;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    if (end > at) out.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

// The job's model and tokenizer, as far as their files are on this machine.
Assembly parts_here(const JobConfig& job, Validation& v) {
  const auto absent = [&](const char* key, const std::optional<std::string>& path,
                          const std::string& builtin) {
    if (!path || *path == builtin || exists(*path)) return false;
    v.not_checked.push_back(fmt::format("{}={}: not on this machine", key, *path));
    return true;
  };
  const bool no_model = absent("model.path", job.model.path, "");
  const bool no_tokenizer = absent("model.tokenizer", job.model.tokenizer, "bytes");
  absent("data.chat_template", job.data.chat_template, "builtin:chat");
  // The tokenizer gives vocab_size.
  const bool no_vocabulary = no_tokenizer && job.model.arch && !job.model.config.count("vocab_size");
  return no_model || no_vocabulary ? Assembly() : assemble(job, !no_tokenizer);
}

void check_model(const JobConfig& job, const Assembly& parts, Validation& v) {
  const Model& model = *parts.model;
  for (const ParamSpec& s : model.params().specs) v.parameters += numel(s.shape);
  if (parts.tokenizer) check_vocab(*parts.tokenizer, model.vocab_size());
  const bool reads_tokens = model.vocab_size() > 0;
  if (!job.data.max_length && reads_tokens)
    v.assumed.push_back(fmt::format("data.max_length={}: the model's positions", model.max_length()));
  if (job.data.max_length && reads_tokens && *job.data.max_length > model.max_length())
    throw UsageError("[data] data.max_length={} ({}) is more than the model's {} positions",
                     *job.data.max_length, job.origins.where("data.max_length"), model.max_length());
  const auto sharded = shard_specs(model.params().specs, static_cast<int>(job.parallel.n_model_shards),
                                   custom_rules(job), training_storage(job).weights);
  for (const std::string& w : sharded.sharding.warnings) v.assumed.push_back(w);
}

// The parameters of a pipeline that may have its own: a built-in one without a model, or a user's. Throws if
// its settings make no network. Of a user's, collate() and loss() are traced without data: their mistakes
// and those in `settings:` are found.
i64 check_own_parameters(const JobConfig& job, const Assembly& parts, Pipeline& pipeline) {
  const PipelineInfo* info = pipeline_info(job.pipeline);
  if (info && info->needs_model && job.models.values.empty()) return 0;
  check_metrics(job, pipeline);
  const ModelParams all = pipeline.all_params();
  i64 n = 0;
  for (const ParamSpec& s : all.specs) n += numel(s.shape);
  if (info) return n;
  const auto context = Context::meta(Mesh{1, 1}, 0);
  const Context::Use use(*context);
  const bool has_length = parts.model && parts.model->vocab_size() > 0;
  const i64 length = job.data.max_length.value_or(has_length ? parts.model->max_length() : 1);
  const BatchShape shape{.rows = 2, .mine = {0, 2}, .length = length, .target_length = length};
  ParamTree params =
      make_params(all, shard_specs(all.specs, 1, custom_rules(job)).layouts, training_storage(job));
  TrainStep step(pipeline, params, step_options(job.train, job.parallel, training_storage(job).weights));
  const Batch batch = collate_examples(pipeline, {}, shape);
  step.run({batch}, {0}, 0, 0, 1e-4);
  return n;
}

void validate(JobConfig job, Validation& v) {
  prepare_job(job, JobUse::validate, model_key_problems, JobFiles::unchecked);
  make_pipeline(job.pipeline);  // throws if it cannot be loaded; its parameters may be left unchecked below
  v.mp = job.parallel.n_model_shards;
  if (const auto ranks = declared_ranks(job)) {
    v.n_ranks = *ranks;
    v.dp = mesh_of(job, *ranks).dp();
    const BatchSizes b = batch_sizes(job, v.dp);
    v.global_batch = b.global;
    v.per_device = b.per_device;
    v.accumulation = b.accumulation;
    if (!b.assumed.empty()) v.assumed.push_back(b.assumed);
    if (!job.parallel.n_ranks && job.parallel.hosts.empty())
      v.assumed.push_back(
          fmt::format("parallel.n_ranks={}: n_model_shards, outside of a SLURM allocation", *ranks));
  } else {
    v.not_checked.push_back("the ranks: parallel.hostfile is read when the job starts");
  }
  const Assembly parts = parts_here(job, v);
  if (parts.model) check_model(job, parts, v);
  if (v.not_checked.empty()) {
    const auto pipeline = planned_pipeline(job, parts);
    if (const i64 n = check_own_parameters(job, parts, *pipeline); n > 0) v.parameters = n;
    for (const std::string& folder : check_training_weights(job, parts, *pipeline))
      v.not_checked.push_back(fmt::format("the weights: {} has none", folder));
  }
  for (const bool evaluation : {false, true})
    for (const std::string& f : job.data.files(evaluation))
      if (!is_builtin(f) && !exists(f))
        v.not_checked.push_back(fmt::format("data: {} is not on this machine", f));
}

}  // namespace

Validation validate_job(const std::vector<std::string>& files, const std::vector<std::string>& overrides) {
  Validation v;
  try {
    validate(load_job(files, overrides, model_key_problems), v);
  } catch (const UsageError& e) {
    v.problems = lines_of(e.what());
  }
  return v;
}

std::string to_text(const Validation& v) {
  std::string s = "ok\n";
  const auto line = [&](const char* name, const std::string& value) {
    s += fmt::format("  {:<12} {}\n", name, value);
  };
  if (v.n_ranks) line("mesh", fmt::format("{}: dp {} x mp {}", counted(v.n_ranks, "rank"), v.dp, v.mp));
  if (v.global_batch)
    line("batch", fmt::format("{} rows per step, {} per replica together, {}", v.global_batch, v.per_device,
                              counted(v.accumulation, "micro-batch")));
  if (v.parameters) line("parameters", fmt::format("{}", v.parameters));
  for (const auto& a : v.assumed) line("assumed", a);
  for (const auto& n : v.not_checked) line("not checked", n);
  return s;
}

std::string to_json(const Validation& v) {
  Json j = {{"ok", v.problems.empty()}, {"problems", v.problems}};
  j["mesh"] = v.n_ranks ? Json{{"n_ranks", v.n_ranks}, {"dp", v.dp}, {"mp", v.mp}} : Json();
  j["batch"] =
      v.global_batch
          ? Json{{"global", v.global_batch}, {"per_device", v.per_device}, {"accumulation", v.accumulation}}
          : Json();
  j["parameters"] = v.parameters ? Json(v.parameters) : Json();
  j["assumed"] = v.assumed;
  j["not_checked"] = v.not_checked;
  return j.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

Assembly preflight(const JobConfig& job, JobUse use) {
  const LaunchPlan launch = plan_launch(launch_request(job));
  if (use == JobUse::train) batch_sizes(job, mesh_of(job, launch.n_ranks).dp());
  Assembly parts;
  if (use == JobUse::train) {
    parts = assemble(job);
    if (parts.model) {
      if (parts.tokenizer) check_vocab(*parts.tokenizer, parts.model->vocab_size());
      shard_specs(parts.model->params().specs, static_cast<int>(job.parallel.n_model_shards),
                  custom_rules(job), training_storage(job).weights);
    }
    const auto pipeline = planned_pipeline(job, parts);
    check_own_parameters(job, parts, *pipeline);
  } else {
    const PredictModel m = load_predict_model(job);
    if (m.tokenizer && m.model) check_vocab(*m.tokenizer, m.model->vocab_size());
    const ModelParams all = m.pipeline->all_params();
    shard_specs(all.specs, static_cast<int>(job.parallel.n_model_shards), custom_rules(job),
                inference_storage(job).weights);
    check_weights(job, m.source, m.model.get(), all, inference_storage(job), m.named);
  }
  std::vector<std::string> files;
  if (use == JobUse::train) {
    for (const bool evaluation : {false, true})
      for (std::string& f : job.data.files(evaluation)) files.push_back(std::move(f));
  } else if (job.predict.input) {
    files.push_back(*job.predict.input);
  }
  for (const std::string& f : files)
    if (!is_builtin(f)) ReadFile::open(f);
  return parts;
}

}  // namespace redco
