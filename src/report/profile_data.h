// WORKDIR/profile/summary.json, which a training with train.profile writes: where the time of some steps
// went.
#pragma once

#include <string>
#include <vector>

#include "base/types.h"

namespace redco {

// Of all profiled steps together: seconds as means over the ranks; calls, FLOPs and bytes of one rank.
struct ProfileData {
  struct Phase {
    std::string name;
    double seconds = 0, longest = 0;  // longest: on the slowest rank
  };
  struct Op {
    std::string name, phase, scope;  // scope: the part of the model
    double calls = 0, seconds = 0, flops = 0;
  };
  struct Kernel {
    std::string name;
    double calls = 0, seconds = 0;
  };
  struct Collective {
    std::string name, axis, phase;
    // seconds: of the waits. transfer: from start to end, also while ops run.
    double calls = 0, bytes = 0, seconds = 0, longest = 0, transfer = 0;
  };
  i64 first_step = 0, n_steps = 1, n_ranks = 1;
  double seconds = 0;
  std::vector<Phase> phases;            // do not overlap
  std::vector<Op> ops;                  // without the time of the collectives inside
  std::vector<Kernel> kernels;          // of all ops
  std::vector<Collective> collectives;  // each list: the longest first
  double memory_peak = 0;               // bytes of tensors, on the fullest rank
};

// Reads the file, which may be damaged. ContentsError: it is not a summary; the message names the field.
ProfileData read_profile_data(const std::string& path);

}  // namespace redco
