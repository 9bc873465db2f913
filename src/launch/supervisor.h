// Decides from typed outcomes whether the ranks of a training are started again. Pure: no time, no processes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "base/types.h"
#include "launch/outcome.h"

namespace redco {

// How far this or an earlier start of the job came.
enum class Reached : std::uint8_t {
  nothing,  // a host that does not answer may be a mistake in the job
  hosts,    // all hosts passed the preflight
  ranks,    // all ranks ran
};

// Whether another start of the same job can end better. False for what a person must mend: wrong settings or
// data, a full disk, a loss that is not finite, a crash in the program.
bool can_mend(const Outcome& outcome, Reached reached);

struct RestartRules {
  i64 max_restarts = 3;       // fault.max_restarts
  bool shrink_batch = false;  // fault.shrink_batch: once after a lack of memory, with half the micro-batch
};

struct Restart {
  bool restarts = false;  // false: the job ends with the outcome's code
  double wait = 0;        // s before the next start
  bool shrinks_batch = false;
  i64 number = 0;      // of this restart since the newest checkpoint, from 1
  std::string reason;  // why there is no further start; "" if the outcome itself says it
};

class Supervisor {
 public:
  explicit Supervisor(const RestartRules& rules) : rules_(rules) {}

  // After a start that came to `outcome`. checkpoint: the newest step with a complete checkpoint, -1: none.
  // Each newer checkpoint fills the budget of restarts up again.
  Restart after(const Outcome& outcome, i64 checkpoint);
  // All hosts have passed the preflight.
  void hosts_answered() { reached_ = std::max(reached_, Reached::hosts); }

 private:
  RestartRules rules_;
  i64 used_ = 0, checkpoint_ = -1;
  Reached reached_ = Reached::nothing;
  bool shrunk_ = false;
};

// Optimizer steps that were made after the checkpoint and are made again; 0 if the outcome has no step.
i64 lost_steps(const Outcome& outcome, i64 checkpoint);

}  // namespace redco
