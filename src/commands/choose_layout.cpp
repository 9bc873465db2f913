#include "commands/choose_layout.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "assembly/assembly.h"
#include "assembly/job_model.h"
#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/words.h"
#include "ckpt/publish.h"
#include "commands/measure_machine.h"
#include "commands/plan_request.h"
#include "config/bind.h"
#include "launch/batch_hosts.h"
#include "launch/topology.h"
#include "pipelines/pipelines.h"
#include "run/run.h"
#include "workdir/workdir_names.h"

namespace redco {

namespace {

constexpr std::size_t kShown = 8;
constexpr i64 kMostJobBytes = 16 << 20;

std::vector<std::string> sharding_keys() {
  std::vector<std::string> out;
  for (const StateSharding s : kSharded) out.push_back(std::string("parallel.") + name_of(s));
  return out;
}

// Which values the layout decides: what the job does not give.
struct Open {
  bool ranks;  // on this machine, whose speed was measured
  bool shards, rows, recompute, sharding;
  explicit Open(const JobConfig& job)
      : ranks(!job.origins.given("parallel.n_ranks") && hosts_of(job).empty() && !job.plan.devices &&
              !job.plan.flops_per_s && !in_allocation()),
        shards(!job.origins.given("parallel.n_model_shards")),
        rows(!job.origins.given("train.per_device_batch_size")),
        recompute(!job.origins.given("train.recompute")),
        sharding(std::ranges::none_of(sharding_keys(), [&](const auto& k) { return job.origins.given(k); })) {
  }

  static bool in_allocation() { return !allocated_hosts(current_environment()).hosts.empty(); }
  static std::vector<Host> hosts_of(const JobConfig& job) {
    return hosts_of_job(job.parallel.hosts, job.parallel.hostfile);
  }
};

// Sets a layout. `place`: where its values come from.
void set_layout(JobConfig& job, const Open& open, const PlanSetting& s, const std::string& place) {
  const auto decide = [&](bool is_open, const char* key, auto& value, auto chosen) {
    if (!is_open) return;
    value = chosen;
    job.origins.set(key, place);
  };
  decide(open.ranks, "parallel.n_ranks", job.parallel.n_ranks, s.mesh.ranks());
  decide(open.shards, "parallel.n_model_shards", job.parallel.n_model_shards, s.mesh.mp());
  decide(open.rows, "train.per_device_batch_size", job.train.per_device_batch_size, s.per_device);
  decide(open.recompute, "train.recompute", job.train.recompute,
         s.recompute ? Recompute::block : Recompute::none);
  if (!open.sharding) return;
  job.parallel.set_sharding(s.sharding);
  for (const std::string& key : sharding_keys()) job.origins.set(key, place);
}

// "2 ranks = dp 1 x mp 2, micro-batch 4, recompute none, ZeRO-1"
std::string layout_text(const PlanSetting& s) {
  return fmt::format("{} = dp {} x mp {}, micro-batch {}, recompute {}{}", counted(s.mesh.ranks(), "rank"),
                     s.mesh.dp(), s.mesh.mp(), s.per_device, s.recompute ? "block" : "none",
                     s.sharding == StateSharding::none ? "" : fmt::format(", {}", name_of(s.sharding)));
}

// The numbers of ranks to try: on one machine the divisors of its cores, or what the threads of the job
// allow.
std::vector<std::optional<i64>> numbers_of_ranks(const JobConfig& job, const Open& open) {
  if (!open.ranks) return {std::nullopt};
  const int cores = this_machine().usable_cores;
  if (const auto threads = job.parallel.threads_per_rank) return {std::max<i64>(1, cores / *threads)};
  std::vector<std::optional<i64>> out;
  for (int n = 1; n <= cores; ++n)
    if (cores % n == 0) out.emplace_back(n);
  return out;
}

i64 ranks_of(const JobConfig& job) {
  return declared_ranks(job).value_or(std::max<i64>(1, total_slots(Open::hosts_of(job))));
}

// From a job to the requests of searches. UsageError: the job has no model or no train.global_batch_size.
struct Chooser {
  const JobConfig& job;
  Open open;
  Assembly parts;
  std::unique_ptr<Pipeline> pipeline;
  std::vector<StateSharding> shardings;

  // what: what needs the choice, for messages.
  Chooser(const JobConfig& j, const std::string& what) : job(j), open(j) {
    if (!job.train.global_batch_size)
      throw UsageError(
          "[layout] {} chooses the micro-batch and the number of replicas. Set train.global_batch_size, so "
          "that the rows of a step don't depend on them",
          what);
    check_job(job, JobUse::plan, model_key_problems);
    parts = assemble_for_plan(job);
    if (!parts.model && !pipeline_info(job.pipeline))
      throw UsageError(
          "[layout] {} needs a plan, but pipeline {} has no model, so its batches cannot be planned. Set "
          "parallel.layout=given",
          what, job.pipeline);
    pipeline = planned_pipeline(job, parts);
    shardings = {job.parallel.sharding()};
    if (open.sharding) shardings = {StateSharding::none, StateSharding::optimizer, StateSharding::parameters};
  }

  // On `ranks` ranks; nullopt: on those of the job. None if that is no mesh, or if the machine's speed isn't
  // known; then `hint` is what to do.
  std::optional<PlanRequest> request(std::optional<i64> ranks, std::string& hint) const {
    JobConfig with = with_allocation(job);
    if (ranks) {
      with.parallel.n_ranks = *ranks;
      if (!open.shards && *ranks % job.parallel.n_model_shards != 0) return std::nullopt;
    }
    // plan_request() wants a mesh: that with the most shards has rows for each replica.
    if (open.shards && !job.plan.devices) with.parallel.n_model_shards = ranks_of(with);
    if (!open.shards && ranks_of(with) / job.parallel.n_model_shards > *job.train.global_batch_size)
      return std::nullopt;
    PlanRequest r = plan_request(with, parts, *pipeline);
    if (open.shards) r.n_model_shards.reset();
    if (open.rows) r.per_device.reset();
    r.global_batch = job.train.global_batch_size;
    const Speeds speeds =
        speeds_for(with, r.machines.most_ranks_per_host(r.n_ranks.value_or(r.machines.ranks())));
    if (hint.empty()) hint = speeds.hint;
    if (!speeds.model) return std::nullopt;
    r.model = speeds.model;
    return r;
  }
};

// The checkpoint that the training resumes from; "" if it starts at step 0.
std::string resumed_checkpoint(const JobConfig& job) {
  if (job.checkpoint.resume == "never" || !job.workdir) return "";
  if (job.checkpoint.resume != "auto") return job.checkpoint.resume;
  return ckpt::CheckpointFolder(join_path(*job.workdir, workdir::kCheckpoints))
      .find_newest("checkpoint.resume")
      .path;
}

// Takes the layout from the job that the checkpoint was saved with; false if it chose none.
bool keep_layout(JobConfig& job, const std::string& checkpoint) {
  const std::string path = join_path(checkpoint, ckpt::kJobPath);
  if (!exists(path)) return false;
  JobConfig saved;
  load_settings(settings_of(saved), {{path, read_file(path, kMostJobBytes)}}, {});
  if (saved.parallel.layout != LayoutMode::automatic) return false;
  const PlanSetting kept{
      .mesh = mesh_of(saved, saved.parallel.n_ranks.value_or(saved.parallel.n_model_shards)),
      .global_batch = saved.train.global_batch_size.value_or(1),
      .per_device = saved.train.per_device_batch_size.value_or(1),
      .recompute = saved.train.recompute == Recompute::block,
      .sharding = saved.parallel.sharding()};
  set_layout(job, Open(job), kept, path);
  info("[layout] parallel.layout=auto: as in {}: {}", checkpoint, layout_text(kept));
  return true;
}

}  // namespace

LayoutChoice choose_layout(JobConfig job) {
  const Chooser chooser(job, fmt::format("parallel.layout=auto ({})", job.origins.where("parallel.layout")));
  const Open& open = chooser.open;
  if (open.ranks && is_rank_process())
    throw UsageError(
        "[layout] parallel.layout=auto ({}) chooses the number of ranks, but they were started already. Start "
        "one `redco train` without mpirun, or set parallel.n_ranks",
        job.origins.where("parallel.layout"));
  LayoutChoice out;
  std::optional<PlanCandidate> nearest;
  std::string hint;
  for (const auto& ranks : numbers_of_ranks(job, open)) {
    const auto r = chooser.request(ranks, hint);
    if (!r) continue;
    LayoutSearch found = search_layouts(*r, chooser.shardings);
    for (TimedSetting& t : found.fitting) out.fitting.push_back(std::move(t));
    if (!nearest) nearest = found.nearest;
    out.speeds = r->model->speeds().origin;
  }
  if (out.fitting.empty()) {
    if (nearest)
      throw Error(
          ExitCode::doesnt_fit,
          fmt::format("[layout] no layout fits: the nearest is {}, which needs {} of the {} that a rank "
                      "may use. Use more hosts, or a smaller model or data.max_length",
                      layout_text(nearest->setting), human_bytes(static_cast<u64>(nearest->memory.total())),
                      human_bytes(static_cast<u64>(nearest->limit))));
    if (!hint.empty())
      throw UsageError(
          "[layout] parallel.layout=auto ({}) needs the speed of this machine. {}, or set "
          "parallel.layout=given",
          job.origins.where("parallel.layout"), hint);
    throw UsageError("[layout] no mesh of the ranks has a row of train.global_batch_size={} ({}) per replica",
                     *job.train.global_batch_size, job.origins.where("train.global_batch_size"));
  }
  std::ranges::stable_sort(out.fitting, {}, &TimedSetting::seconds);
  set_layout(job, open, out.fitting.front().setting, "parallel.layout=auto");
  out.job = std::move(job);
  return out;
}

Scaling plan_scaling(const JobConfig& job) {
  if (!job.plan.devices)
    throw UsageError(
        "[plan] --scale predicts the speed on many machines. Give them with plan.devices='HOSTS x DEVICES x "
        "MEMORY', and their speed with plan.flops_per_s and plan.memory_bytes_per_s");
  const Chooser chooser(job, "--scale");
  std::string hint;
  const auto r = chooser.request(std::nullopt, hint);
  if (!r) throw UsageError("[plan] --scale needs the speed of a device. {}", hint);
  return predict_scaling(*r, chooser.shardings);
}

std::string to_text(const LayoutChoice& c) {
  std::string t = fmt::format("\nlayouts that fit, by predicted time ({})\n", c.speeds);
  for (std::size_t i = 0; i < c.fitting.size() && i < kShown; ++i) {
    const TimedSetting& f = c.fitting[i];
    t += fmt::format("  {:>10} a step  {:>10} a rank  {}\n", human_duration(f.seconds),
                     human_bytes(static_cast<u64>(f.memory.total())), layout_text(f.setting));
  }
  if (c.fitting.size() > kShown) t += fmt::format("  and {} more\n", c.fitting.size() - kShown);
  return t;
}

std::string with_layouts(const std::string& plan, const LayoutChoice& c) {
  auto whole = nlohmann::ordered_json::parse(plan);
  auto& j = whole["layouts"] = nlohmann::ordered_json::array();
  for (const TimedSetting& f : c.fitting)
    j.push_back({{"step_s", f.seconds},
                 {"bytes_per_rank", f.memory.total()},
                 {"dp", f.setting.mesh.dp()},
                 {"mp", f.setting.mesh.mp()},
                 {"per_device_batch_size", f.setting.per_device},
                 {"recompute", f.setting.recompute ? "block" : "none"},
                 {"sharded_state", name_of(f.setting.sharding)}});
  return whole.dump(2) + "\n";
}

JobConfig with_layout(JobConfig job, bool resumes) {
  if (job.parallel.layout != LayoutMode::automatic) return job;
  if (const std::string checkpoint = resumes ? resumed_checkpoint(job) : "";
      !checkpoint.empty() && keep_layout(job, checkpoint))
    return job;
  LayoutChoice c = choose_layout(std::move(job));
  const TimedSetting& best = c.fitting.front();
  info("[layout] parallel.layout=auto: {}; a step of {} as predicted ({}), the fastest of {} that fit",
       layout_text(best.setting), human_duration(best.seconds), c.speeds,
       counted(static_cast<i64>(c.fitting.size()), "setting"));
  return std::move(c.job);
}

}  // namespace redco
