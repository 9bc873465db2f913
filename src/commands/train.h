// The command train: from a checked JobConfig to the exit code.
#pragma once

#include <string>
#include <vector>

#include "job/job_config.h"

namespace redco {

// What this program was built from, for a run's environment.json.
struct BuildInfo {
  std::string version, revision, libraries;
};

// `program`: this command again, for the ranks.
int run_train(const JobConfig& job, const std::vector<std::string>& program, const BuildInfo& build);

}  // namespace redco
