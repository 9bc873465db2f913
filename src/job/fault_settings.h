// The `fault:` section: what happens when a rank or a host fails.
#pragma once

#include "base/settings.h"

namespace redco {

struct FaultSettings {
  // Long work is not a false alarm, because each part of it reports progress (base/activity.h). A system call
  // on a slow disk or a function of a user's pipeline reports none, but takes minutes at most.
  double timeout = 300;
  i64 max_restarts = 3;
  bool elastic = false, shrink_batch = false, buddy = false;
  i64 buddy_steps = 50;
  i64 check_replicas_every_n_steps = 100;

  void visit(SettingsVisitor& v) {
    v.field("timeout", timeout,
            "time limit in seconds: a rank without progress for this long is stuck, a rank without any "
            "message is lost; the job then ends with exit code 5 and names the rank; 0: no limit")
        .at_least(0)
        .at_most(1e9);
    v.field(
         "max_restarts", max_restarts,
         "restarts of a training on several ranks after a rank, a host or the network was lost; each newer "
         "checkpoint fills the number up again; the waits before them are 1, 5 and 30 s; 0: the training "
         "ends with exit code 5. Errors in settings or data, full disks and crashes are not repeated")
        .at_least(0)
        .at_most(1000);
    v.field(
        "elastic", elastic,
        "restart with fewer replicas while hosts of parallel.hosts do not answer, with the same rows of a "
        "step by more accumulation; the training uses all hosts again at the next checkpoint after they "
        "answer. Results differ by rounding from those on all hosts");
    v.field("shrink_batch", shrink_batch,
            "restart a training on several ranks once with half the per_device_batch_size after a lack of "
            "memory; the rows of a step stay, results differ by rounding");
    v.field(
        "buddy", buddy,
        "buddy checkpoints: copies of the training's state in the memory of two hosts (of one host if the "
        "job has no other). A restart of the ranks continues from them without reading a checkpoint, if "
        "they are newer. They end with the command, and need twice the memory of parameters and "
        "optimizer, twice that where no other replica is on another host");
    v.field("buddy_steps", buddy_steps,
            "steps between two buddy checkpoints, which a lost rank or host costs at most")
        .at_least(1);
    v.field("check_replicas_every_n_steps", check_replicas_every_n_steps,
            "steps between two comparisons of the parameters of all replicas; a difference ends the run with "
            "exit code 5; 0: no comparisons")
        .at_least(0);
  }
};

}  // namespace redco
