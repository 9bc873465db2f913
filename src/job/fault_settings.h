// The `fault:` section: what happens when a rank fails.
#pragma once

#include "base/settings.h"

namespace redco {

struct FaultSettings {
  // Half an hour, as torch.distributed: what one rank may well do alone while the others wait in a collective
  // (long answers on one replica, a cold network file system) takes minutes; a stopped process takes for
  // ever. Waits for the first rank to write are not limited at all.
  double timeout = 1800;

  void visit(SettingsVisitor& v) {
    v.field("timeout", timeout,
            "seconds that ranks wait for another in a collective before they name it and the job ends with "
            "code 5; 0 waits for ever")
        .at_least(0)
        .at_most(1e9);
  }
};

}  // namespace redco
