// One combination of `redco check`, on its ranks: loss terms and gradients of the job's first training step.
#pragma once

#include <string>

#include "run/run.h"
#include "train/example.h"

namespace redco {

// The first word of the hidden command that runs a combination: __check FOLDER OWN.
constexpr const char* kCheckCommand = "__check";

// Files in the folder of a check. The first combination that gets so far writes the record; all use it, so
// algorithms that sample their examples compare the same ones.
constexpr const char* kCheckRecord = "record.json";
// And in the folder of each combination.
constexpr const char* kCheckResult = "result.json";
constexpr const char* kCheckGradients = "gradients";  // .safetensors

// The examples of a step, in its order, and what pipeline.state() was after source(). The other combinations
// restore this state, as a resumed run does, so that source() samples nothing again.
struct CheckRecord {
  std::string state;
  std::vector<Example> examples;
  std::vector<std::pair<i64, i64>> lengths;  // length and target length of each
};
std::string to_json(const CheckRecord& record);
CheckRecord check_record_of(const std::string& json);

// How an example differs from the recorded one ("its field 'x' has 3 values instead of 2"); "" if they are
// equal. Values may differ by rounding, 1e-4 of the field's largest: they may come from the parameters.
std::string example_difference(const Example& e, const Example& recorded);

// Runs the step of the job that the parent process handed over (run/handed_job.h). `folder`: that of the
// check; `own`: that of this combination. Returns the exit code.
int run_check_step(const RunRequest& request, const std::string& folder, const std::string& own);

}  // namespace redco
