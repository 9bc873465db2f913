#include "commands/train.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "assembly/assembly.h"
#include "assembly/job_params.h"
#include "assembly/job_pipeline.h"
#include "assembly/lm_data.h"
#include "assembly/predict_model.h"
#include "assembly/training_parts.h"
#include "assembly/trust.h"
#include "base/error.h"
#include "base/file.h"
#include "base/kept_memory.h"
#include "base/log.h"
#include "base/process.h"
#include "base/signals.h"
#include "base/words.h"
#include "ckpt/publish.h"
#include "commands/choose_layout.h"
#include "commands/plan_job.h"
#include "commands/plan_request.h"
#include "job/resume_changes.h"
#include "kernels/isa.h"
#include "kernels/threads.h"
#include "launch/env_report.h"
#include "launch/resource_limits.h"
#include "launch/slurm.h"
#include "metrics/metric_text.h"
#include "pipeline/load_python.h"
#include "pipeline/shared_objects.h"
#include "pipelines/pipelines.h"
#include "plan/report.h"
#include "run/run.h"
#include "train/predictor.h"
#include "train/trainer.h"
#include "workdir/run_history.h"
#include "workdir/run_record.h"
#include "workdir/workdir_names.h"

namespace redco {

namespace {

// The hosts of these ranks, in the order of the ranks. Memory that the ranks already use counts as available.
// Collective.
std::vector<RunningHost> running_hosts(Context& c) {
  i64 memory_total = 0, memory_available = 0;
  read_memory("", memory_total, memory_available);
  const std::string mine =
      fmt::format("{} {} {} {}", host_name(), memory_available, peak_memory_bytes(), memory_total);
  std::vector<RunningHost> hosts;
  std::map<std::string, i64> total;
  for (const std::string& text : c.world().gather(mine)) {
    std::istringstream in(text);
    std::string name;
    i64 available = 0, used = 0, all = 0;
    in >> name >> available >> used >> all;
    auto it = std::find_if(hosts.begin(), hosts.end(), [&](const auto& h) { return h.name == name; });
    if (it == hosts.end()) it = hosts.insert(hosts.end(), {name, 0, available});
    ++it->ranks;
    it->memory += used;
    total[name] = all;
  }
  for (RunningHost& h : hosts) h.memory = std::min(h.memory, total[h.name]);
  return hosts;
}

// "node1:2, node2:2"
std::string hosts_text(const std::vector<RunningHost>& hosts) {
  constexpr std::size_t kMost = 16;
  std::string text;
  for (std::size_t i = 0; i < std::min(hosts.size(), kMost); ++i)
    text += fmt::format("{}{}:{}", i ? ", " : "", hosts[i].name, hosts[i].ranks);
  return text + (hosts.size() > kMost ? fmt::format(" and {} more", hosts.size() - kMost) : "");
}

// The job with the ranks and hosts it runs on.
JobConfig placed(JobConfig job, const std::vector<RunningHost>& hosts, int n_ranks) {
  job.plan.devices.reset();
  job.parallel.hostfile.reset();
  job.parallel.hosts.clear();
  job.parallel.n_ranks = n_ranks;
  if (hosts.size() > 1)
    for (const RunningHost& h : hosts) job.parallel.hosts.push_back(fmt::format("{}:{}", h.name, h.ranks));
  return job;
}

// Checks before the first allocation that the job fits into memory, and with parallel.strict that only the
// collectives of the standard rules occur. nullopt if a user's pipeline has no model, because only the
// pipeline knows its batches. First rank only.
std::optional<PlanReport> checked_plan(const JobConfig& job, const Assembly& parts,
                                       const std::vector<RunningHost>& hosts) {
  if (!parts.model && !pipeline_info(job.pipeline)) return std::nullopt;
  PlanReport plan;
  try {
    plan = plan_job(job, parts, hosts);
  } catch (const NoPlanError& e) {
    info("[memory] not checked, because the job has no plan: {}", e.what());
    return std::nullopt;
  }
  if (plan.fits) return plan;
  throw Error(
      ExitCode::doesnt_fit,
      fmt::format(
          "[memory] a rank needs {} and may use {} ({} has {} free for {}); {}. See `redco plan`; "
          "{}train.recompute=block, a smaller per_device_batch_size or more ranks need less",
          human_bytes(plan.memory.total()), human_bytes(plan.memory_limit), plan.tightest.host,
          human_bytes(static_cast<u64>(plan.tightest.memory)), counted(plan.tightest.ranks, "rank"),
          plan.smallest_n_model_shards
              ? fmt::format("parallel.n_model_shards={} would fit", *plan.smallest_n_model_shards)
              : "no number of shards fits these machines",
          parts.model && !job.data.max_length && parts.model->max_length() > 0
              ? fmt::format("data.max_length is not set, so rows may have the model's {} tokens: set it "
                            "to the length of the data, e.g. 512; ",
                            parts.model->max_length())
              : ""));
}

// Writes config.resolved.yaml, plan.json and environment.json.
void describe_run(const ResolvedJob& resolved, const std::optional<PlanReport>& plan,
                  const BuildInfo& build) {
  const std::string& workdir = *resolved.job().workdir;
  write_file_durable(join_path(workdir, workdir::kConfig), resolved.yaml());
  if (plan) {
    write_file_durable(join_path(workdir, workdir::kPlan), to_json(*plan));
  } else {
    remove_file(join_path(workdir, workdir::kPlan));
  }
  EnvReport env = collect_env(build.version, kernels::describe(), mpi_version());
  env.revision = build.revision;
  env.libraries = build.libraries;
  write_file_durable(join_path(workdir, workdir::kEnvironment), env_json(env) + "\n");
}

// Changes of the job since the checkpoint was saved: an error or a note for each. First rank only.
// Checkpoints of older versions hold no job.
void check_changes(const JobConfig& job, const std::string& checkpoint) {
  const std::string path = join_path(checkpoint, ckpt::kJobPath);
  if (!exists(path)) return;
  const ResumeChanges changes = resume_changes({path, read_file(path, 16 << 20)}, job);
  refuse_resume_changes(changes, checkpoint);
  for (const std::string& note : resume_notes(changes)) info("[resume] {}", note);
}

std::vector<PluginRecord> plugin_records(const JobConfig& job) {
  std::vector<PluginRecord> out;
  for (const std::string& path : shared_objects(job)) {
    const SharedObject& object = load_shared_object(path, "plugins");
    out.push_back({path, object.fingerprint, object.families});
  }
  return out;
}

// The plan of the job on these ranks, on the first one; none for a pipeline that only runs. Opens the
// workdir. Collective.
std::optional<PlanReport> plan_and_open(Run& run, const Assembly& parts,
                                        const std::vector<RunningHost>& hosts) {
  Group& world = run.context().world();
  const JobConfig here = placed(run.job(), hosts, world.size());
  std::optional<PlanReport> plan;
  world.on_first([&] { plan = checked_plan(here, parts, hosts); });
  run.open_workdir();
  world.on_first([&] {
    // make_job_params() prints the warnings of the sharding.
    if (plan)
      for (const std::string& w : plan->warnings)
        if (const auto& said = plan->sharding.warnings; std::find(said.begin(), said.end(), w) == said.end())
          warn("{}", w);
  });
  return plan;
}

// "[train] 124439808 parameters on dp 2 x mp 1, 4 threads per rank". UsageError: LoRA without adapters.
void report_parameters(const Run& run, const ModelSource& source, const ParamTree& params) {
  i64 n = 0, trained = 0;
  bool adapters = false;
  for (const ParamSpec& s : params.specs()) {
    n += numel(s.shape);
    if (!s.frozen) trained += numel(s.shape);
    adapters = adapters || !s.adapter.weight.empty();
  }
  if (source.lora && !adapters)
    throw UsageError("[lora] pipeline {} has no layers for adapters. Remove train.lora", run.job().pipeline);
  const Mesh& mesh = run.context().mesh();
  if (run.first())
    info("[train] {} parameters{} on dp {} x mp {}, {} per rank", n,
         trained < n ? fmt::format(" ({} trained)", trained) : "", mesh.dp(), mesh.mp(),
         counted(kernels::threads(), "thread"));
}

void warn_of_long_answers(const JobConfig& job, const Model* model) {
  if (!model || !job.origins.given("eval.generation.max_new_tokens")) return;
  if (const auto text =
          long_answer_warning(*model, "eval.generation.max_new_tokens", job.eval.generation.max_new_tokens);
      !text.empty())
    warn("[eval] {}", text);
}

// Files of the model that checkpoints repeat. Collective.
void keep_model_files(TrainJob& t, const Run& run, const Assembly& parts) {
  const std::string& folder = parts.source.folder;
  run.context().world().on_first([&] {  // the first rank writes them
    if (parts.model)
      t.generation_config =
          saved_generation_config(run.job(), parts.source, *parts.model, parts.tokenizer.get());
    if (!run.job().data.chat_template || !parts.tokenizer) return;
    if (const auto chat = job_chat_template(run.job(), *parts.tokenizer, folder))
      t.chat_template = chat->source();
  });
}

// "SIGTERM"; the first rank may see the vote of another one before its own request.
std::string what_stopped() {
  return end_requested() != 0 ? signal_text(end_requested()) : "a request to another rank";
}

// Records the end of the run and logs it. First rank only.
void report_end(const std::string& workdir, const TrainResult& r) {
  using Kind = ckpt::RunEvent::Kind;
  ckpt::append_run_event(workdir, {.kind = r.interrupted ? Kind::stopped : Kind::finished,
                                   .step = r.steps,
                                   .reason = r.interrupted     ? what_stopped()
                                             : r.stopped_early ? "early stopping"
                                                               : ""});
  if (r.interrupted) {
    info("[train] stopped by {} after step {}{}; {}; the same command resumes there", what_stopped(), r.steps,
         r.evaluation_pending ? ", before its evaluation" : "",
         r.saved ? "saved " + join_path(workdir, workdir::checkpoint(ckpt::step_name(r.steps)))
                 : "nothing had to be saved");
    return;
  }
  std::string text;
  if (std::isfinite(r.last_loss)) text = ", last loss " + human_number(r.last_loss);
  if (!r.evaluation.empty()) text += "; evaluation: " + metrics_text(r.evaluation, ", ");
  info("[train] done: {}{}{}; checkpoint in {}", counted(r.steps, "step"),
       r.stopped_early ? ", stopped early" : "", text, join_path(workdir, workdir::checkpoint("last")));
}

// The key of the job's keepers; "": no buddy checkpoints.
std::string kept_memory_of(const FaultSettings& fault, const Run& run) {
  if (!fault.buddy) return "";
  const Environment environment = current_environment();
  const auto it = environment.find(kKeptVariable);
  if (it != environment.end()) return it->second;
  if (run.first())
    info(
        "[fault] fault.buddy has no effect here. It needs several ranks that redco starts: on this machine, on "
        "the hosts of parallel.hosts or parallel.hostfile, or by mpirun in a SLURM allocation");
  return "";
}

int train_on_ranks(Run& run, const BuildInfo& build) {
  Context& c = run.context();
  Group& world = c.world();
  const Assembly parts = assemble_training(run);
  BatchSizes sizes;
  world.together([&] { sizes = batch_sizes(run.job(), c.mesh().dp()); });
  run.decide_global_batch_size(sizes.global);
  const JobConfig& job = run.job();
  const std::string workdir = *job.workdir;
  const std::vector<RunningHost> hosts = running_hosts(c);
  const std::optional<PlanReport> plan = plan_and_open(run, parts, hosts);

  const Model* const model = parts.model.get();
  const ModelSource& source = parts.source;
  std::unique_ptr<Pipeline> pipeline;
  auto leases = verify_source(job, world);
  world.together([&] { pipeline = make_training_pipeline(job, parts, sizes.per_device); });
  for (auto& lease : verify_named(parts.named, world)) leases.push_back(std::move(lease));
  if (run.first() && !sizes.assumed.empty()) info("[train] {}", sizes.assumed);
  if (run.first()) warn_of_long_answers(job, model);
  const std::string cache = *cache_folder(job);
  pipeline->train_data = make_training_data(job, *pipeline, source.folder, cache);
  pipeline->eval_sets = make_eval_sets(job, *pipeline, source.folder, cache);
  ParamTree params =
      make_job_params(job, source, model, pipeline->all_params(), training_storage(job), &parts.named);
  std::map<std::string, FrozenModel> frozen = frozen_models(parts.named, params, job.train.seed, world);
  std::optional<FrozenModel> base = base_of_adapter(model, source, world);
  leases.clear();
  report_parameters(run, source, params);

  TrainJob t{.pipeline = pipeline.get(),
             .params = &params,
             .train = job.train,
             .eval = job.eval,
             .checkpoint = job.checkpoint,
             .parallel = job.parallel,
             .weights = training_storage(job).weights,
             .global_batch_size = sizes.global,
             .per_device_batch_size = sizes.per_device,
             .group_by_length = job.data.group_by_length,
             .pipeline_name = job.pipeline,
             .workdir = workdir,
             .slurm_job = slurm_job_name(current_environment()),
             .adapter_config = model ? job_adapter_config(source, *model) : "",
             .job_yaml = run.resolved().yaml(),
             .base = std::move(base),
             .frozen_models = std::move(frozen),
             .plugins = plugin_records(job),
             .on_resume = [&](const std::string& checkpoint) { check_changes(job, checkpoint); },
             .on_begin =
                 [&](i64 step, i64 total, i64 start) {
                   set_log_file(join_path(workdir, workdir::kLog));  // the old file may have been moved away
                   describe_run(run.resolved(), plan, build);
                   for (const std::string& path : user_code_files(job))
                     trust_for_job(path, run.resolved().yaml());
                   ckpt::append_run_event(workdir, {.step = step,
                                                    .number = start,
                                                    .total_steps = total,
                                                    .pipeline = job.pipeline,
                                                    .model = plan ? plan->title : "",
                                                    .hosts = hosts_text(hosts)});
                 },
             .check_replicas_every = job.fault.check_replicas_every_n_steps,
             .kept_memory = kept_memory_of(job.fault, run),
             .buddy_steps = job.fault.buddy_steps,
             .threads_per_rank = kernels::threads(),
             .isa = kernels::name_of(kernels::isa())};
  keep_model_files(t, run, parts);
  const TrainResult r = train(t);
  if (run.first()) report_end(workdir, r);
  return static_cast<int>(r.interrupted ? ExitCode::interrupted : ExitCode::ok);
}

// The SLURM job that began the run in a workdir; "" if it is not known.
std::string job_of_run(const std::string& workdir) {
  try {
    const auto record = read_run_record(workdir);
    return record ? record->slurm_job : "";
  } catch (const ContentsError&) {  // the training reports it, unless it begins a new run
    return "";
  }
}

// Adapts the job to a SLURM job array or restart; each change is logged.
void adapt_to_slurm(JobConfig& job, const Environment& environment) {
  const std::string workdir = workdir_of_task(*job.workdir, environment);
  if (workdir != *job.workdir) info("[train] a task of a SLURM job array; its workdir is {}", workdir);
  job.workdir = workdir;
  const std::string resume = resume_of_start(job.checkpoint.resume, job_of_run(workdir), environment);
  if (resume != job.checkpoint.resume)
    info(
        "[train] restart {} of the SLURM job that began this run: checkpoint.resume={} applies to the first "
        "start only",
        environment.at("SLURM_RESTART_COUNT"), job.checkpoint.resume);
  job.checkpoint.resume = resume;
}

// Checks the weights in the process that starts the ranks, before it does. Where none does, the first rank
// checks them with its plan (plan_job.h), as for a pipeline of the user, which the launcher doesn't load.
void check_before_start(const JobConfig& job) {
  if (!pipeline_info(job.pipeline) || plan_launch(launch_request(job)).way != LaunchPlan::Way::mpirun) return;
  struct Quiet {  // the ranks log the same
    LogLevel before = log_level();
    Quiet() { set_log_level(std::max(before, LogLevel::error)); }
    ~Quiet() { set_log_level(before); }
  } const quiet;
  const Assembly parts = assemble_for_plan(job);
  check_training_weights(job, parts, *planned_pipeline(job, parts));
}

}  // namespace

int run_train(const RunRequest& request, const BuildInfo& build) {
  RunRequest r = request;
  r.save_on_signal = true;
  r.restarts = true;
  r.job = [given = request.job] {
    JobConfig job = given();
    adapt_to_slurm(job, current_environment());
    job = with_layout(std::move(job), true);
    check_before_start(job);
    return job;
  };
  return run(r, [&](Run& run) { return train_on_ranks(run, build); });
}

}  // namespace redco
