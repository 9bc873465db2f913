#include "commands/plan_job.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "assembly/job_model.h"
#include "assembly/job_params.h"
#include "assembly/job_pipeline.h"
#include "assembly/training_parts.h"
#include "base/error.h"
#include "base/words.h"
#include "commands/generation_shape.h"
#include "commands/plan_request.h"
#include "generate/generate.h"
#include "launch/topology.h"
#include "pipelines/pipelines.h"
#include "train/learning_rate.h"

namespace redco {

namespace {

nlohmann::ordered_json calls_json(const PredictedTime& t) {
  nlohmann::ordered_json calls = nlohmann::ordered_json::array();
  for (const CallTime& c : t.calls)
    calls.push_back({{"kind", c.kind}, {"count", c.count}, {"seconds", c.seconds}});
  calls.push_back({{"kind", "ops"}, {"seconds", t.ops}});
  calls.push_back({{"kind", "collectives"}, {"seconds", t.collectives}});
  return calls;
}

}  // namespace

PlanReport plan_job(const JobConfig& given, bool with_time) {
  const JobConfig job = with_allocation(given);
  check_job(job, JobUse::plan, model_key_problems);
  return plan_job(job, assemble_for_plan(job), {}, with_time);
}

PlanReport plan_job(const JobConfig& job, const Assembly& parts, const std::vector<RunningHost>& running,
                    bool with_time) {
  const auto pipeline = planned_pipeline(job, parts);
  const std::vector<std::string> bare = check_training_weights(job, parts, *pipeline);
  PlanRequest r = plan_request(job, parts, *pipeline, running);
  const auto plan = [&] {
    PlanReport report = make_plan(r);
    for (const std::string& folder : bare)
      report.warnings.push_back(
          fmt::format("{} has no weights, so their names and shapes are not checked", folder));
    report.learning_rate = schedule_of(job.train, 0).words();
    return report;
  };
  if (!with_time) return plan();
  const Speeds speeds =
      speeds_for(job, r.machines.most_ranks_per_host(r.n_ranks.value_or(r.machines.ranks())));
  r.model = speeds.model;
  PlanReport report = plan();
  if (!r.model) report.speeds = speeds.hint;
  return report;
}

GenerationPlan plan_generation(const JobConfig& given) {
  const JobConfig job = with_allocation(given);
  check_job(job, JobUse::plan, model_key_problems);
  const Assembly parts = assemble(job, false);
  const Model* const model = parts.model.get();
  if (!model || !model->generates_text() || model->is_encoder_decoder() || model->vocab_size() == 0)
    throw UsageError(
        "[plan] --predict plans the generation of decoders; {} generates no text or has an encoder. Leave out --predict",
        parts.source.config.source());
  const auto pipeline = make_job_pipeline(job, model, nullptr);
  GenerationPlan p;
  p.title = parts.source.config.source();
  const Machines machines =
      job.plan.devices ? parse_devices(*job.plan.devices) : machines_of(job, this_machine());
  p.machines = machines.text;
  const i64 n_ranks =
      declared_ranks(job).value_or(job.plan.devices ? job.parallel.n_model_shards : machines.ranks());
  p.mesh = mesh_of(job, n_ranks);
  const GenerationShape shape = generation_shape(job, model->max_length());
  p.length = shape.length;
  p.new_tokens = shape.new_tokens;
  p.rows = job.predict.batch_size * p.mesh.dp();
  const Speeds speeds = speeds_for(job, machines.most_ranks_per_host(n_ranks));
  p.speeds = speeds.hint;
  if (!speeds.model) return p;
  p.speeds = speeds.model->speeds().origin;
  const ParamStorage storage = inference_storage(job);
  p.time = generation_time(
      {.model = model,
       .pipeline = pipeline.get(),
       .mesh = p.mesh,
       .layouts =
           shard_specs(pipeline->params().specs, p.mesh.mp(), custom_rules(job), storage.weights).layouts,
       .storage = storage,
       .compute = job.train.compute_dtype,
       .cache = job.predict.cache_dtype,
       .rows = job.predict.batch_size,
       .prompt = p.length,
       .new_tokens = p.new_tokens,
       .costs = speeds.model.get(),
       .machines = &machines});
  return p;
}

double GenerationPlan::prefill_tokens_per_s() const {
  return time ? static_cast<double>(rows * length) / time->prefill.total : 0;
}
double GenerationPlan::decode_tokens_per_s() const {
  return time ? static_cast<double>(rows) / time->step.total : 0;
}

std::string to_text(const GenerationPlan& p) {
  std::string t =
      fmt::format("{}: {} of {} + {} tokens, dp {} x mp {}, on {}\n", p.title, counted(p.rows, "row"),
                  p.length, p.new_tokens, p.mesh.dp(), p.mesh.mp(), p.machines);
  if (!p.time) return t + fmt::format("time: unknown. {}\n", p.speeds);
  t += fmt::format("predicted ({})\n  prompt    {} tokens/s\n", p.speeds,
                   human_count(p.prefill_tokens_per_s()));
  t += fmt::format("  decoding  {} tokens/s; a step of one token per row takes {} s\n",
                   human_count(p.decode_tokens_per_s()), human_number(p.time->step.total));
  return t;
}

std::string to_json(const GenerationPlan& p) {
  nlohmann::ordered_json j = {
      {"model", p.title},   {"machines", p.machines}, {"mesh", {{"dp", p.mesh.dp()}, {"mp", p.mesh.mp()}}},
      {"rows", p.rows},     {"length", p.length},     {"new_tokens", p.new_tokens},
      {"speeds", p.speeds}, {"time", nullptr}};
  if (p.time)
    j["time"] = {{"prefill_tokens_per_s", p.prefill_tokens_per_s()},
                 {"decode_tokens_per_s", p.decode_tokens_per_s()},
                 {"prefill_s", p.time->prefill.total},
                 {"step_s", p.time->step.total},
                 {"prefill_calls", calls_json(p.time->prefill)},
                 {"step_calls", calls_json(p.time->step)}};
  return j.dump(2) + "\n";
}

}  // namespace redco
