// The environment that all ranks of a job share. ssh passes no variables on, so mpirun gets the name of each.
#pragma once

#include <map>
#include <set>
#include <string>

#include "launch/slurm.h"

namespace redco {

// parallel.environment: name -> JSON text (base/settings.h, rest). A value is a string, an integer, or null:
// the variable of `here`, if it is set there.
// UsageError: a name that is not an identifier, a value of another type, a zero byte, or OMP_NUM_THREADS,
// which parallel.threads_per_rank sets.
Environment parse_environment(const std::map<std::string, std::string>& settings,
                              const Environment& here = {});

// The variables that ranks inherit from the process that starts them: REDCO_*, OPENBLAS_*, OMP_*, GOMP_*,
// HF_*, HWLOC_HIDE_ERRORS, and SLURM's job, task and restart numbers; with `other_hosts` also PATH and
// LD_LIBRARY_PATH, which programs on other hosts need to start.
std::set<std::string> inherited_names(const Environment& environment, bool other_hosts);

}  // namespace redco
