// How a job ended, from mpirun's status, mpirun's text and the ranks' reports.
#pragma once

#include <optional>
#include <string>

#include "base/types.h"
#include "launch/mpirun_output.h"
#include "launch/outcome.h"

namespace redco {

// What the watch server knows at the end.
struct RankEnds {
  bool all_started = false;  // every rank has reported
  bool said_code_1 = false;  // a rank has reported that it ends with code 1
  bool said_code_5 = false;  // the same with code 5: all ranks agreed on that error
};

// `status` is mpirun's, as waitpid() gives it. Pure. Places have the numbers and hosts of ranks only.
Outcome job_outcome(int status, const MpirunOutput& output, const RankEnds& ranks);

// Whether the kernel killed a rank of this host for lack of memory: SIGKILL, and the cgroup's count of such
// kills is above `kills_before`. `root`: see launch/resource_limits.h. False for ranks of other hosts: their
// counts are unknown.
bool ran_out_of_memory(const Outcome& outcome, i64 kills_before, const std::string& root);

}  // namespace redco
