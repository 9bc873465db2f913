// The command predict: from a checked JobConfig to the exit code.
#pragma once

#include <string>
#include <vector>

#include "job/job_config.h"

namespace redco {

// `program`: this command again, for the ranks.
int run_predict(const JobConfig& job, const std::vector<std::string>& program);

}  // namespace redco
