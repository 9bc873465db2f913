// What a training tells about itself in its workdir, for `redco runs` and `redco report`:
//
//   history.jsonl  when the run started, resumed and ended, one JSON object per line, the oldest first
//   best.json      the best value of each evaluation metric and its step
//
// The last line of the history is the run's state. A run that was killed has written no end.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/types.h"

namespace redco::ckpt {

struct RunEvent {
  // restart: a start ended in a way that another start can mend, and the launcher makes one.
  enum class Kind : std::uint8_t { start, finished, stopped, failed, restart };
  Kind kind = Kind::start;
  double time = 0;  // seconds since 1970; append_run_event() sets it
  i64 step = -1;    // start: the step of the checkpoint it resumes, or 0; an end: the last step; -1: unknown
  i64 number = 0;   // start: its number in the run (run_identity.h); 0: unknown
  i64 total_steps = 0;          // start: where the run ends
  std::string pipeline, model;  // start: for people
  std::string reason;           // finished: "early stopping" or ""; stopped: "SIGTERM"; failed: the error
  int code = 0;                 // failed, restart: the exit code
  std::string hosts;            // start: "node1:2, node2:2"; restart: the lost hosts, "" if unknown
  i64 lost_steps = 0;           // restart: steps after the newest checkpoint, which are made again
};

// Appends a line. A failure gives a warning and does not end the run. Several ranks may append at the same
// time.
void append_run_event(const std::string& workdir, RunEvent event);

struct RunHistory {
  std::vector<RunEvent> events;
  i64 damaged = 0;  // lines that are not an event, except a last line without its newline
};
// The events in the last `most_bytes` of the file; empty without a file. IoError: it can't be read.
RunHistory read_run_history(const std::string& workdir, i64 most_bytes = i64{16} << 20);
// Bytes of the file; 0 if there is none.
i64 run_history_size(const std::string& workdir);

struct BestMetric {
  double value = 0;
  i64 step = 0;
};
using BestMetrics = std::map<std::string, BestMetric>;  // by the names of metrics.jsonl: "eval_loss"

// Replaces best.json. IoError.
void write_best_metrics(const std::string& workdir, const BestMetrics& best);
// Empty without a file. ContentsError: it is not an object of {"value": number, "step": number}.
BestMetrics read_best_metrics(const std::string& workdir);

}  // namespace redco::ckpt
