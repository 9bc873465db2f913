// The command evaluate: from a checked JobConfig to the exit code.
#pragma once

#include <string>
#include <vector>

#include "job/job_config.h"

namespace redco {

// Prints the metrics of data.eval as a JSON object on stdout; the weights are those that predict would take.
int run_evaluate(const JobConfig& job, const std::vector<std::string>& program);

}  // namespace redco
