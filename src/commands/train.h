// The command train: from a job to the exit code.
#pragma once

#include <string>
#include <vector>

#include "run/run.h"

namespace redco {

// What this program was built from, for a run's environment.json.
struct BuildInfo {
  std::string version, revision, libraries;
};

int run_train(const RunRequest& request, const BuildInfo& build);

}  // namespace redco
