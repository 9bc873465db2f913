// What a training left in its workdir, read for the report. Each file may be missing, cut or damaged:
// `problems` names what can't be read, and the rest is shown.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "report/profile_data.h"
#include "report/series.h"
#include "workdir/run_history.h"

namespace redco {

struct RunData {
  // metrics.jsonl: curves by name, in the order in which they first appear.
  std::vector<std::pair<std::string, Series>> curves;
  const Series* find(const std::string& name) const;
  double first_time = 0, last_time = 0;  // seconds since 1970; 0 if unknown

  std::vector<ckpt::RunEvent> events;       // history.jsonl
  std::string config;                       // config.resolved.yaml
  std::string plan_json, environment_json;  // objects, or ""
  std::string log_tail;                     // the last complete lines of log.txt

  struct Outputs {
    i64 step = 0;
    std::string set;  // the evaluation set's name
    std::vector<std::string> head;
    std::vector<std::vector<std::string>> rows;
    i64 n = 0;  // lines of the file, of which `rows` are the first
  };
  std::vector<Outputs> outputs;  // the newest first

  // Of the newest evaluation that wrote some, one per evaluation set: counts[true class][predicted class].
  struct Confusion {
    i64 step = 0;
    std::string set;  // the evaluation set's name
    std::vector<std::string> classes;
    std::vector<std::vector<i64>> counts;
  };
  std::vector<Confusion> confusions;

  struct Checkpoint {
    i64 step = 0;
    std::string name;
    std::vector<std::string> pointers;
    i64 bytes = 0;
    bool newest_whole = false;
  };
  std::vector<Checkpoint> checkpoints;  // the newest first

  std::optional<ProfileData> profile;  // profile/summary.json

  std::vector<std::string> problems;
};

// Whether the folder has a file that trainings write.
bool is_workdir(const std::string& folder);
// The sizes of the files below a folder; links are not followed.
i64 tree_bytes(const std::string& folder, int depth = 8);
// UsageError: no such folder, or no workdir.
RunData read_run(const std::string& workdir);

}  // namespace redco
