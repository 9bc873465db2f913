// The command predict: from a job to the exit code.
#pragma once

#include <string>
#include <vector>

#include "run/run.h"

namespace redco {

int run_predict(const RunRequest& request);

}  // namespace redco
