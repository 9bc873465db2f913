// Checks of a job without running it: `redco validate`, and `--dry-run`.
#pragma once

#include <string>
#include <vector>

#include "assembly/assembly.h"
#include "job/job_config.h"

namespace redco {

struct Validation {
  std::vector<std::string> problems;  // one message each; empty if the job is valid
  i64 n_ranks = 0, dp = 0, mp = 0;    // 0 if only a hostfile or a SLURM allocation knows
  i64 global_batch = 0, per_device = 0, accumulation = 0;
  i64 parameters = 0;                             // 0 if the model's config isn't on this machine
  std::vector<std::string> assumed, not_checked;  // lines of text
};

// Checks keys, values and their combinations, and the model's config if preset, arch or a folder on this
// machine gives it. Reads no data, and of the weights only names and shapes. Problems of the YAML are
// returned, not thrown.
Validation validate_job(const std::vector<std::string>& files, const std::vector<std::string>& overrides);
std::string to_text(const Validation& v);  // REQUIRES: no problems
std::string to_json(const Validation& v);  // {ok, problems, mesh, batch, parameters, assumed, not_checked}

// Loads everything but values of weights and data: pipeline, tokenizer, the model's config, the sharding
// rules, the launch. Looks for the data files. Throws the errors of the run. REQUIRES: check_job(job, use)
// succeeded; for predict the job is one of trained_job(). Returns the parts of a training; none for predict.
Assembly preflight(const JobConfig& job, JobUse use);

}  // namespace redco
