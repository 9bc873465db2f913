// The command evaluate: from a job to the exit code.
#pragma once

#include <string>
#include <vector>

#include "run/run.h"

namespace redco {

// Prints the metrics of the evaluation data as a JSON object on stdout. The weights are the same as in
// predict.
int run_evaluate(const RunRequest& request);

}  // namespace redco
