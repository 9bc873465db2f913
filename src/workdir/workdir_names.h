// The names of the files and folders in a workdir. Other code uses these constants and no literals.
// docs/checkpoint_format.md describes the contents.
#pragma once

#include <string>
#include <vector>

#include "base/types.h"

namespace redco::workdir {

// Files of the run that the workdir holds.
constexpr const char* kRecord = "run.json";
constexpr const char* kHistory = "history.jsonl";
constexpr const char* kConfig = "config.resolved.yaml";
constexpr const char* kPlan = "plan.json";
constexpr const char* kEnvironment = "environment.json";
constexpr const char* kLog = "log.txt";
constexpr const char* kMetrics = "metrics.jsonl";
constexpr const char* kBest = "best.json";
constexpr const char* kTensorboard = "tensorboard";
constexpr const char* kEvalOutputs = "eval_outputs";
constexpr const char* kCheckpoints = "checkpoints";
constexpr const char* kProfile = "profile";
constexpr const char* kProfileSummary = "profile/summary.json";
constexpr const char* kCalls = "calls";
constexpr const char* kReport = "report.html";

// Files of no run.
constexpr const char* kCache = "cache";
constexpr const char* kPrevious = "previous";  // files of older runs, in a folder for each
constexpr const char* kLock = ".lock";
constexpr const char* kMoving = ".moving.json";  // exists while an old run is moved to kPrevious

// "profile/rank-3.json", "calls/rank-3.txt"
std::string profile_of_rank(int rank);
std::string calls_of_rank(int rank);
// "eval_outputs/NAME", "checkpoints/NAME"
std::string eval_output(const std::string& name);
std::string checkpoint(const std::string& name);

struct Name {
  const char* name;  // of a file or folder directly in the workdir
  bool of_run;       // a new run in the workdir moves it aside
  bool shows_a_run;  // a folder that holds it is a workdir (`redco runs`, `redco report`)
};
// All of them.
const std::vector<Name>& names();
std::vector<std::string> names_of_run();
std::vector<std::string> names_that_show_a_run();

}  // namespace redco::workdir
