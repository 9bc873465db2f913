// One combination of `redco check`, on its ranks: loss terms and gradients of the job's first training step.
#pragma once

#include <string>

#include "run/run.h"

namespace redco {

// The first word of the hidden command that runs a combination: __check FOLDER OWN.
constexpr const char* kCheckCommand = "__check";

// Files in the folder of a check. The first combination that gets so far writes the record; all use it, so
// algorithms that sample their examples compare the same ones.
constexpr const char* kCheckRecord = "record.json";
// And in the folder of each combination. With fp32 weights, the result of the one that writes the record also
// has `rounding`: how much each number changes if all parameters change by a unit of their last place.
constexpr const char* kCheckResult = "result.json";
constexpr const char* kCheckGradients = "gradients";  // .safetensors

// Runs the step of the job that the parent process handed over (run/handed_job.h). `folder`: that of the
// check; `own`: that of this combination. Returns the exit code.
int run_check_step(const RunRequest& request, const std::string& folder, const std::string& own);

}  // namespace redco
