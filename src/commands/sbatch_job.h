// A job's SLURM batch script: what src/launch/sbatch.h needs, from the job.
#pragma once

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
  std::optional<std::string> job_name, partition, account, time_limit, memory;
  std::optional<i64> nodes;
};

// Nodes: as given, else as many as parallel.hosts names, else 1. Threads of a rank:
// parallel.threads_per_rank, else this machine's usable cores shared by the ranks of a node, which is said in
// a note on stderr. Throws UsageError.
std::string sbatch_script(const JobConfig& job, const SbatchOptions& o);

// Hands the script to SLURM's sbatch, whose words go to stdout and stderr. UsageError if there is no sbatch;
// Error(rank_failed) if it refuses.
void submit_sbatch(const std::string& script);

}  // namespace redco
