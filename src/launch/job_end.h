// How a job ended: exit code and message, from mpirun's status, mpirun's text and the ranks' reports.
#pragma once

#include <optional>
#include <string>

#include "base/types.h"
#include "launch/mpirun_output.h"

namespace redco {

// What the watch server knows at the end.
struct RankEnds {
  bool all_started = false;  // every rank has reported
  bool said_code_1 = false;  // a rank has reported that it ends with code 1
};

struct JobEnd {
  int code = 0;
  std::string message;  // for the user, unless a rank has printed an error; "" if there is nothing to add
};
// `status` is mpirun's, as waitpid() gives it. Pure.
JobEnd job_end(int status, const MpirunOutput& output, const RankEnds& ranks);

// Whether the kernel killed a rank of this host for lack of memory: SIGKILL, and the cgroup's count of such
// kills is above `kills_before`. `root`: see launch/resource_limits.h. False for ranks of other hosts: their
// counts are unknown.
bool ran_out_of_memory(int status, const std::optional<MpirunOutput::Failure>& failure, i64 kills_before,
                       const std::string& root);

}  // namespace redco
