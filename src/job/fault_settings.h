// The `fault:` section: what happens when a rank fails.
#pragma once

#include "base/settings.h"

namespace redco {

struct FaultSettings {
  // Long work is no false alarm, because it ticks in pieces (base/activity.h). What does not tick is one
  // system call on a slow disk, or a function of a user's pipeline: minutes at most.
  double timeout = 300;
  i64 check_replicas_every_n_steps = 100;

  void visit(SettingsVisitor& v) {
    v.field(
         "timeout", timeout,
         "seconds without progress after which a rank counts as stuck, and without a sign of life as lost: "
         "the job ends with code 5 and names it; 0: no limit")
        .at_least(0)
        .at_most(1e9);
    v.field(
         "check_replicas_every_n_steps", check_replicas_every_n_steps,
         "steps between two comparisons of the replicas' parameters; a difference ends the run with code 5; "
         "0 compares never")
        .at_least(0);
  }
};

}  // namespace redco
