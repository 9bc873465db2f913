// The starts of a run: where each began, on which hosts, how it ended and what that cost.
#pragma once

#include <string>
#include <vector>

#include "workdir/run_history.h"

namespace redco {

struct RunStartRow {
  i64 number = 0;        // of the start in the run; 0: unknown
  double began = 0;      // seconds since 1970
  i64 step = 0;          // where it began
  std::string hosts;     // "node1:2, node2:2"; "": unknown
  std::string end;       // "finished", "SIGTERM", the reason of a failure; "": no record
  i64 last_step = -1;    // -1: unknown
  i64 lost_steps = 0;    // steps that the next start made again
  double lost_time = 0;  // seconds from the end to the next start, if a launcher made it
};
// From history.jsonl, the oldest first.
std::vector<RunStartRow> run_starts(const std::vector<ckpt::RunEvent>& events);
// A table of them; "" for a run with one start.
std::string starts_section(const std::vector<ckpt::RunEvent>& events);

}  // namespace redco
