// From a job to its SLURM batch script (src/launch/sbatch.h).
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "job/job_config.h"

namespace redco {

struct SbatchOptions {
  std::string program;  // path of redco on the nodes
  std::string command = "train";
  std::vector<std::string> files, overrides;               // the job's words, as given
  std::string output = "slurm-%j.out", launcher = "auto";  // auto, srun or mpirun
  std::optional<std::string> job_name, partition, account, qos, constraint, time_limit, memory;
  std::vector<std::string> modules;
  std::optional<std::string> sweep;  // file of commands/sweep.h: a job array with a task for each combination
  // The checked job with more overrides, those of a task. Needed with `sweep`.
  std::function<JobConfig(const std::vector<std::string>& more)> load;
  bool requeue = true;
  std::optional<i64> nodes;
};

// Nodes: options.nodes, else the number of hosts in parallel.hosts, else 1. Threads per rank:
// parallel.threads_per_rank, else this machine's usable cores divided by the ranks of a node, with a note on
// stderr. Time limit: options.time_limit, else of a training the predicted time (redco plan) with a margin,
// else none. A sweep: the job of each task is loaded and checked before the sweep is written. Throws
// UsageError.
std::string sbatch_script(const JobConfig& job, const SbatchOptions& o);

// Passes the script to SLURM's sbatch, which prints to stdout and stderr. UsageError if there is no sbatch;
// Error(rank_failed) if sbatch fails.
void submit_sbatch(const std::string& script);

}  // namespace redco
