// redco runs: what a workdir holds, from a few small files and the end of metrics.jsonl.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "report/run_state.h"
#include "workdir/run_history.h"

namespace redco {

struct RunSummary {
  std::string workdir;
  std::string pipeline, model;  // "": unknown
  RunState state;
  i64 step = -1, total_steps = 0;     // -1, 0: unknown
  std::optional<double> loss;         // the last one
  ckpt::BestMetrics best;             // by the names of metrics.jsonl
  i64 bytes = 0;                      // on the disk, with everything in the workdir
  double time = 0;                    // of the newest event or metrics line, seconds since 1970; 0: unknown
  std::vector<std::string> problems;  // files that are damaged
};

// `holder`: who trains in the workdir now; "": nobody.
RunSummary summarize_run(const std::string& workdir, const std::string& holder);

// The workdirs in a folder, sorted: the folder itself if it is one, else its subfolders, at most 3 levels
// deep. Hidden folders are skipped. UsageError: no such folder.
std::vector<std::string> find_workdirs(const std::string& folder);

}  // namespace redco
