// How many threads each rank gets: parallel.threads_per_rank, else the lowest of cores / ranks over the
// hosts. It is the same on all ranks, because all must run the same kernels.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "launch/choose_launcher.h"
#include "launch/host.h"
#include "launch/slurm.h"

namespace redco {

struct ThreadShare {
  std::optional<int> threads;      // none: the cores of some host are unknown here, so the ranks decide
  bool all_known = true;           // the cores of all hosts
  bool fits = true;                // each thread has a core
  bool fills = false;              // the ranks take more than half of some host
  std::vector<std::string> notes;  // for the log
};
// hosts: with their ranks as slots.
ThreadShare threads_per_rank(const LaunchRequest& request, const std::optional<SlurmJob>& slurm,
                             const std::vector<Host>& hosts);

}  // namespace redco
