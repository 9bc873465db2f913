// Whether a run is running, finished, stopped, failed or killed.
#pragma once

#include <string>
#include <vector>

#include "workdir/run_history.h"

namespace redco {

struct RunState {
  enum class Kind : std::uint8_t {
    running,
    finished,
    stopped,  // by a signal
    failed,   // with an error
    killed,   // started, not running, and it has written no end
    unknown   // not running, and it has written no history
  };
  Kind kind = Kind::unknown;
  // "finished after step 20", "stopped by SIGTERM after step 7 of 20", "failed with exit code 6": one line.
  std::string text;
  std::string error;  // failed: the message, which may have several lines
};
// "running", ...; "not running" for unknown.
const char* name_of(RunState::Kind kind);

// `holder`: who trains in the workdir now, "process 17 on node1"; "": nobody.
RunState run_state(const std::vector<ckpt::RunEvent>& events, const std::string& holder);

// Where the newest start ends; 0: unknown.
i64 total_steps(const std::vector<ckpt::RunEvent>& events);

}  // namespace redco
