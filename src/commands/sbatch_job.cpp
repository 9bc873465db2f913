#include "commands/sbatch_job.h"

#include <fmt/ranges.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <set>

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/words.h"
#include "commands/plan_job.h"
#include "commands/sweep.h"
#include "launch/host.h"
#include "launch/sbatch.h"
#include "launch/topology.h"

namespace redco {

namespace {

// "runs/first.yaml" -> "first"
std::string stem(const std::string& path) {
  const std::string name = file_name(path);
  const auto dot = name.rfind('.');
  return dot == std::string::npos || dot == 0 ? name : name.substr(0, dot);
}

bool in_path(const std::string& program) {
  const char* path = std::getenv("PATH");
  const std::string folders = path ? path : "";
  for (std::size_t at = 0; at <= folders.size();) {
    const std::size_t end = std::min(folders.find(':', at), folders.size());
    if (::access(join_path(folders.substr(at, end - at), program).c_str(), X_OK) == 0) return true;
    at = end + 1;
  }
  return false;
}

// The job on the nodes of the script, for a plan.
JobConfig on_nodes(JobConfig job, const SbatchRequest& r) {
  job.parallel.n_ranks = r.ranks;
  job.parallel.threads_per_rank = r.threads_per_rank;
  if (job.parallel.hosts.empty() && !job.parallel.hostfile)
    job.parallel.hosts = {fmt::format("node[1-{}]:{}", r.nodes, ceil_div(r.ranks, r.nodes))};
  return job;
}

// SLURM ends a job that needs more memory than it requested. Silent where the job has no plan.
void check_memory(const JobConfig& job, const SbatchRequest& r) {
  if (!r.memory_per_node || r.command != "train") return;
  try {
    const i64 ranks = ceil_div(r.ranks, r.nodes);
    const auto needed = ranks * static_cast<i64>(plan_job(on_nodes(job, r)).memory.total());
    if (needed > *r.memory_per_node << 20)
      warn("[sbatch] --memory {} is less than the {} that `redco plan` predicts for the {} of a node",
           human_bytes(static_cast<u64>(*r.memory_per_node) << 20), human_bytes(static_cast<u64>(needed)),
           counted(ranks, "rank"));
  } catch (const Error&) {
  }
}

// A limit for a training of train.max_steps, from its predicted time, in SLURM's form. Steps wait for data,
// evaluations and saves, which the prediction leaves out: it gets a quarter more, and ten minutes. nullopt:
// the time is not known; logs why.
std::optional<std::string> predicted_limit(const JobConfig& job, const SbatchRequest& r) {
  if (!job.train.max_steps) {
    info("[sbatch] no time limit: --time and train.max_steps are not given");
    return std::nullopt;
  }
  try {
    const PlanReport plan = plan_job(on_nodes(job, r), true);
    if (!plan.time) {
      info("[sbatch] no time limit: the time of a step is not known. {}", plan.speeds);
      return std::nullopt;
    }
    const double steps = static_cast<double>(*job.train.max_steps) * plan.time->total;
    const i64 minutes = 10 + static_cast<i64>(std::ceil(1.25 * steps / 60));
    info("[sbatch] time limit: {} steps of {} s as predicted ({}), a quarter more, and 10 minutes",
         *job.train.max_steps, human_number(plan.time->total), plan.speeds);
    return fmt::format("{}-{:02}:{:02}:00", minutes / (24 * 60), minutes / 60 % 24, minutes % 60);
  } catch (const Error& e) {
    info("[sbatch] no time limit: {}", e.what());
    return std::nullopt;
  }
}

// The ranks that the script starts, their nodes and the cores of each. SLURM chooses the hosts: those of the
// job only give the numbers.
void set_ranks(const JobConfig& job, const SbatchOptions& o, SbatchRequest& r) {
  const auto hosts = hosts_of_job(job.parallel.hosts, job.parallel.hostfile);
  r.ranks = job.parallel.n_ranks.value_or(hosts.empty() ? job.parallel.n_model_shards : total_slots(hosts));
  mesh_of(job, r.ranks);
  r.nodes = o.nodes.value_or(hosts.empty() ? 1 : static_cast<i64>(hosts.size()));
  if (r.nodes > r.ranks)
    throw UsageError(
        "[sbatch] {} nodes for {} ranks: some nodes would have no rank. Use --nodes {} or more ranks",
        r.nodes, r.ranks, r.ranks);
  r.threads_per_rank = job.parallel.threads_per_rank.value_or(
      std::max<i64>(1, this_machine().usable_cores / ceil_div(r.ranks, r.nodes)));
}

// Under mpirun redco uses the hosts of the job if it names some, instead of the nodes of SLURM.
void leave_hosts_to_slurm(const JobConfig& job, SbatchRequest& r) {
  const auto set = [&](const std::string& key, const char* none) {
    std::erase_if(r.overrides, [&](const std::string& o) { return o.starts_with(key + "="); });
    r.overrides.push_back(key + "=" + none);
  };
  if (!job.parallel.hosts.empty()) set("parallel.hosts", "[]");
  if (job.parallel.hostfile) set("parallel.hostfile", "~");
}

// All tasks of an array have the same nodes and cores. UsageError: the job of a task cannot run on them.
void check_tasks(const Sweep& sweep, const SbatchOptions& o, const SbatchRequest& r) {
  std::set<std::string> outputs;
  for (std::size_t i = 0; i < sweep.tasks.size(); ++i) {
    const std::string where = fmt::format("[sbatch] {}, task {} ({})", *o.sweep, i,
                                          excerpt(fmt::format("{}", fmt::join(sweep.tasks[i], " "))));
    SbatchRequest task = r;
    try {
      const JobConfig job = o.load(sweep.tasks[i]);
      set_ranks(job, o, task);
      if (r.command == "predict" && job.predict.output && !outputs.insert(*job.predict.output).second)
        throw UsageError(
            "several tasks would write predict.output={}. Remove it: each task then prints its answers into its own "
            "log",
            *job.predict.output);
    } catch (const UsageError& e) {
      throw UsageError("{}: {}", where, e.what());
    }
    if (task.ranks != r.ranks || task.threads_per_rank != r.threads_per_rank)
      throw UsageError(
          "{}: this task has {} x {}, but the job has {} x {}, and all tasks of an array have the same nodes. Remove "
          "the keys of `parallel` from the sweep, and submit an array for each of their values",
          where, counted(task.ranks, "rank"), counted(task.threads_per_rank, "core"),
          counted(r.ranks, "rank"), counted(r.threads_per_rank, "core"));
  }
}

i64 memory_of(const std::string& text) {
  const i64 mib = static_cast<i64>(parse_bytes(text) >> 20);
  if (mib < 1)
    throw UsageError("[sbatch] --memory {} is less than 1 MiB; give the unit, such as 64GiB", excerpt(text));
  return mib;
}

}  // namespace

std::string sbatch_script(const JobConfig& job, const SbatchOptions& o) {
  if (o.files.empty())
    throw UsageError(
        "[sbatch] no job file, which the script runs on the nodes. Give one, e.g. `redco sbatch job.yaml`");
  SbatchRequest r;
  r.program = o.program;
  r.command = o.command;
  r.job_file = o.files.front();
  r.overrides.assign(o.files.begin() + 1, o.files.end());
  r.overrides.insert(r.overrides.end(), o.overrides.begin(), o.overrides.end());
  r.job_name = o.job_name.value_or("redco-" + stem(o.files.front()));
  r.output = o.sweep && o.output == SbatchOptions().output ? "slurm-%A_%a.out" : o.output;
  r.partition = o.partition;
  r.account = o.account;
  r.qos = o.qos;
  r.constraint = o.constraint;
  r.modules = o.modules;
  r.requeue = o.requeue;
  r.time_limit = o.time_limit;
  r.launcher = o.launcher == "srun"     ? SbatchRequest::Launcher::srun
               : o.launcher == "mpirun" ? SbatchRequest::Launcher::mpirun
                                        : SbatchRequest::Launcher::automatic;
  if (o.memory) r.memory_per_node = memory_of(*o.memory);
  set_ranks(job, o, r);
  if (!job.parallel.threads_per_rank)
    info(
        "[sbatch] {} per rank, assuming that nodes have {} cores as this machine; set "
        "parallel.threads_per_rank for another number",
        counted(r.threads_per_rank, "core"), this_machine().usable_cores);
  leave_hosts_to_slurm(job, r);
  check_memory(job, r);
  if (!r.time_limit && r.command == "train") r.time_limit = predicted_limit(job, r);
  const i64 save = r.time_limit ? save_seconds(*r.time_limit, r.save_seconds) : r.save_seconds;
  if (save != r.save_seconds)
    info("[sbatch] the time limit {} is short: the ranks save {} s before its end instead of {} s",
         *r.time_limit, save, r.save_seconds);
  r.save_seconds = save;
  if (!o.sweep) return make_sbatch_script(r);
  if (!job.workdir) throw UsageError("[sbatch] --array needs workdir, the folder of the tasks' workdirs");
  if (job.workdir->find("%a") != std::string::npos)
    throw UsageError(
        "[sbatch] workdir {} has %a, but each task of --array gets the folder task-N in it. Remove %a",
        excerpt(*job.workdir));
  const Sweep sweep = read_sweep(*o.sweep);
  check_tasks(sweep, o, r);
  r.tasks = static_cast<i64>(sweep.tasks.size());
  r.sweep_folder = sweep_folder(*job.workdir);
  const std::string script = make_sbatch_script(r);
  write_sweep(sweep, r.sweep_folder);
  info("[sbatch] {} of {}, with workdirs {}/task-N", counted(r.tasks, "task"), *o.sweep, *job.workdir);
  return script;
}

void submit_sbatch(const std::string& script) {
  if (!in_path("sbatch"))
    throw UsageError(
        "[sbatch] sbatch isn't in PATH: this machine has no SLURM. Without --submit the script is printed");
  std::fflush(nullptr);
  const auto before = std::signal(SIGPIPE, SIG_IGN);
  FILE* p = ::popen("exec sbatch", "w");
  if (!p) throw IoError("[sbatch] starting sbatch: {}", std::strerror(errno));
  const bool whole = std::fwrite(script.data(), 1, script.size(), p) == script.size();
  const int status = ::pclose(p);
  std::signal(SIGPIPE, before);
  if (!whole || status != 0)
    throw Error(ExitCode::rank_failed,
                fmt::format("[sbatch] sbatch refused the script (status {})",
                            WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status)));
}

}  // namespace redco
