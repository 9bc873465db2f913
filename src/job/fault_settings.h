// The `fault:` section: what happens when a rank fails.
#pragma once

#include "base/settings.h"

namespace redco {

struct FaultSettings {
  // Half an hour, as torch.distributed: what one rank may well do alone while the others wait in a collective
  // (long answers on one replica, a cold network file system) takes minutes; a stopped process takes for
  // ever. Waits for the first rank to write are not limited at all.
  double timeout = 1800;
  i64 check_replicas_every_n_steps = 100;

  void visit(SettingsVisitor& v) {
    v.field("timeout", timeout,
            "seconds that ranks wait for another in a collective before they name it and the job ends with "
            "code 5; 0 waits for ever")
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
