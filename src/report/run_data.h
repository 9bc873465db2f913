// The files of a training run's workdir, read for the report. Each file may be missing, incomplete or
// damaged: then `problems` names it, and the rest is still shown.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "report/series.h"

namespace redco {

struct RunData {
  // metrics.jsonl: curves by name, in the order in which they first appear.
  std::vector<std::pair<std::string, Series>> curves;
  const Series* find(const std::string& name) const;
  double first_time = 0, last_time = 0;  // seconds since 1970; 0 if unknown

  std::string config;                       // config.resolved.yaml
  std::string plan_json, environment_json;  // objects, or ""
  std::string log_tail;                     // the last complete lines of log.txt

  struct Outputs {
    i64 step = 0;
    std::vector<std::string> head;
    std::vector<std::vector<std::string>> rows;
    i64 n = 0;  // lines of the file; more than the rows if not all are shown
  };
  std::vector<Outputs> outputs;  // the newest first

  struct Checkpoint {
    i64 step = 0;
    std::string name;
    std::vector<std::string> pointers;
    i64 bytes = 0;
    bool newest_whole = false;
  };
  std::vector<Checkpoint> checkpoints;  // the newest first

  std::vector<std::string> problems;
};

// UsageError: the folder does not exist or is not the workdir of a training run.
RunData read_run(const std::string& workdir);

}  // namespace redco
