// The `fault:` section: what happens when a rank fails.
#pragma once

#include "base/settings.h"

namespace redco {

struct FaultSettings {
  // Long work is not a false alarm, because each part of it reports progress (base/activity.h). A system call
  // on a slow disk or a function of a user's pipeline reports none, but takes minutes at most.
  double timeout = 300;
  i64 check_replicas_every_n_steps = 100;

  void visit(SettingsVisitor& v) {
    v.field("timeout", timeout,
            "time limit in seconds: a rank without progress for this long is stuck, a rank without any "
            "message is lost; the job then ends with exit code 5 and names the rank; 0: no limit")
        .at_least(0)
        .at_most(1e9);
    v.field("check_replicas_every_n_steps", check_replicas_every_n_steps,
            "steps between two comparisons of the parameters of all replicas; a difference ends the run with "
            "exit code 5; 0: no comparisons")
        .at_least(0);
  }
};

}  // namespace redco
