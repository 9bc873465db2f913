// What can be told about a job without running it: `redco validate`, and `--dry-run`.
#pragma once

#include <string>
#include <vector>

#include "job/job_config.h"

namespace redco {

struct Validation {
  std::vector<std::string> problems;  // one message each; none: the job is well formed
  i64 n_ranks = 0, dp = 0, mp = 0;    // 0: only a hostfile or the SLURM allocation tells
  i64 global_batch = 0, per_device = 0, accumulation = 0;
  i64 parameters = 0;                             // 0: the model's config isn't here
  std::vector<std::string> assumed, not_checked;  // for people
};

// Checks the configuration alone: keys, values, what they mean together, and the model's config where preset,
// arch or a folder that is here gives it. Reads no data and no weights. Problems with the YAML are returned,
// not thrown.
Validation validate_job(const std::vector<std::string>& files, const std::vector<std::string>& overrides);
std::string to_text(const Validation& v);  // of a job without problems
std::string to_json(const Validation& v);  // {ok, problems, mesh, batch, parameters, assumed, not_checked}

// Loads what a run would load before its weights and data: pipeline, tokenizer, the model's config, the
// sharding rules, the launch; and looks for the data files. REQUIRES check_job(job, use). Throws what the run
// would throw.
void preflight(const JobConfig& job, JobUse use);

}  // namespace redco
