#include "commands/plan_request.h"

#include <algorithm>

#include "assembly/job_model.h"
#include "assembly/job_params.h"
#include "assembly/job_pipeline.h"
#include "base/error.h"
#include "base/words.h"
#include "commands/measure_machine.h"
#include "launch/batch_hosts.h"
#include "launch/host.h"
#include "pipelines/pipelines.h"

namespace redco {

namespace {

Machines machines_of(const std::vector<RunningHost>& running) {
  Machines m;
  std::string texts;
  for (const RunningHost& h : running) {
    m.slots.push_back(h.ranks);
    m.names.push_back(h.name);
    m.memories.push_back(h.memory);
    texts += fmt::format("{}{} ({} free)", texts.empty() ? "" : ", ", h.name,
                         human_bytes(static_cast<u64>(h.memory)));
  }
  m.text = texts;
  return m;
}

}  // namespace

JobConfig with_allocation(JobConfig job) {
  if (job.plan.devices || !hosts_of_job(job.parallel.hosts, job.parallel.hostfile).empty()) return job;
  for (const Host& h : allocated_hosts(current_environment()).hosts)
    job.parallel.hosts.push_back(fmt::format("{}:{}", h.name, h.slots));
  return job;
}

Machines machines_of(const JobConfig& job, const Machine& here) {
  Machines m;
  const std::vector<Host> hosts = hosts_of_job(job.parallel.hosts, job.parallel.hostfile);
  const std::string size = human_bytes(static_cast<u64>(here.memory_total));
  if (hosts.empty()) {
    m.memory = std::min(here.memory_total, here.memory_available);
    m.slots = {static_cast<int>(declared_ranks(job).value_or(1))};
    m.text = fmt::format("this machine ({} free of {})", human_bytes(static_cast<u64>(m.memory)), size);
  } else {
    m.memory = here.memory_total;
    for (const Host& h : hosts) m.slots.push_back(h.slots);
    m.text = fmt::format("{}, taken to have {} each as this one", counted(hosts.size(), "host"), size);
  }
  return m;
}

Speeds speeds_for(const JobConfig& job, i64 ranks_per_host) {
  const PlanSettings& p = job.plan;
  if (p.flops_per_s && p.memory_bytes_per_s)
    return {std::make_shared<const CostModel>(speeds_of({.flops_per_s = *p.flops_per_s,
                                                         .bf16_flops_per_s = p.bf16_flops_per_s.value_or(0),
                                                         .memory_bytes_per_s = *p.memory_bytes_per_s,
                                                         .host_latency_s = p.host_latency_s,
                                                         .host_bytes_per_s = p.host_bytes_per_s,
                                                         .network_latency_s = p.network_latency_s,
                                                         .network_bytes_per_s = p.network_bytes_per_s})),
            ""};
  if (p.flops_per_s || p.memory_bytes_per_s)
    throw UsageError("[plan] {} is given without {}; set both, or none",
                     p.flops_per_s ? "plan.flops_per_s" : "plan.memory_bytes_per_s",
                     p.flops_per_s ? "plan.memory_bytes_per_s" : "plan.flops_per_s");
  if (p.devices)
    return {nullptr, "State the speed of plan.devices with plan.flops_per_s and plan.memory_bytes_per_s"};
  const auto ranks = static_cast<int>(std::min<i64>(ranks_per_host, 1 << 16));
  const int cores = this_machine().usable_cores;
  const int threads = static_cast<int>(job.parallel.threads_per_rank.value_or(std::max(1, cores / ranks)));
  auto speeds = load_speeds(speed_key({ranks, threads}));
  if (!speeds) {
    const bool usual = std::ranges::count(usual_layouts(cores), CoreLayout{ranks, threads}) > 0;
    return {nullptr, fmt::format("Measure this machine once with `redco env --measure{}`",
                                 usual ? "" : fmt::format(" --layout {}x{}", ranks, threads))};
  }
  if (speeds->network.empty()) state_network(*speeds, p.network_latency_s, p.network_bytes_per_s);
  return {std::make_shared<const CostModel>(std::move(*speeds)), ""};
}

std::unique_ptr<Pipeline> planned_pipeline(const JobConfig& job, const Assembly& parts) {
  return make_job_pipeline(job, parts.model.get(), parts.tokenizer.get(), {}, parts.source.folder,
                           parts.named);
}

PlanRequest plan_request(const JobConfig& job, const Assembly& parts, Pipeline& pipeline,
                         const std::vector<RunningHost>& running) {
  const Model* const model = parts.model.get();
  PlanRequest r;
  r.pipeline = &pipeline;
  r.title = parts.source.config.source();
  const bool given_ranks = job.origins.given("parallel.n_ranks") && job.parallel.n_ranks;
  const bool given_shards = job.origins.given("parallel.n_model_shards");
  if (job.plan.devices) {
    r.machines = parse_devices(*job.plan.devices);
    r.search = !given_ranks || !given_shards;
    if (given_ranks) r.n_ranks = job.parallel.n_ranks;
    if (given_shards) r.n_model_shards = job.parallel.n_model_shards;
    if (r.n_ranks && *r.n_ranks > r.machines.ranks())
      throw UsageError("[plan] n_ranks={} ({}) is more than the {} devices of plan.devices", *r.n_ranks,
                       job.origins.where("parallel.n_ranks"), r.machines.ranks());
    if (r.n_model_shards) mesh_of(job, r.n_ranks.value_or(r.machines.ranks()), "those of plan.devices");
  } else {
    r.machines = running.empty() ? machines_of(job, this_machine()) : machines_of(running);
    r.n_ranks = declared_ranks(job).value_or(r.machines.ranks());
    r.n_model_shards = job.parallel.n_model_shards;
    mesh_of(job, *r.n_ranks);
  }
  r.global_batch = job.train.global_batch_size;
  r.per_device = job.train.per_device_batch_size;
  if (!r.search) {
    const BatchSizes b = batch_sizes(job, *r.n_ranks / *r.n_model_shards);
    r.global_batch = b.global;
    r.per_device = b.per_device;
    r.per_device_assumed = !job.train.per_device_batch_size;
    if (!b.assumed.empty()) r.assumed.push_back(b.assumed);
  } else if (!r.global_batch) {
    r.assumed.push_back("train.global_batch_size is not given: the micro-batch on every replica is a step");
  }
  const bool rows_have_length = model && model->vocab_size() > 0;  // images and vectors have none
  const i64 most = rows_have_length ? model->max_length() : 1;
  r.length = job.data.max_length.value_or(most);
  r.target_length = job.data.max_target_length.value_or(r.length);
  const bool silent = !job.data.max_length && !(job.data.max_source_length && job.data.max_target_length);
  if (silent && rows_have_length)
    r.assumed.push_back(fmt::format("data.max_length is not given: the model's {} positions", r.length));
  if (rows_have_length && r.length > model->length_limit())
    throw UsageError("[data] data.max_length={} ({}) is more than the model's {} positions", r.length,
                     job.origins.where("data.max_length"), most);
  r.length = job.data.max_source_length.value_or(r.length);
  if (job.origins.given("train.recompute")) r.recompute = job.train.recompute == Recompute::block;
  r.rules = custom_rules(job);
  r.strict = job.parallel.strict;
  r.step = step_options(job.train, job.parallel, training_storage(job).weights);
  r.checkpoint = job.checkpoint;
  r.buddy = job.fault.buddy;
  r.answer_batch = job.eval.per_device_batch_size;
  // What predict() of a user's pipeline does is unknown.
  const PipelineInfo* info = pipeline_info(job.pipeline);
  if (info && model && model->generates_text() && job.data.has(true) &&
      (job.eval.n_outputs.value_or(0) > 0 || (info->generates && pipeline.measures_outputs())))
    r.evaluation = job.eval.generation;
  r.compute = job.train.compute_dtype;
  return r;
}

}  // namespace redco
