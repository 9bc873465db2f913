// The environment that all ranks of a job have in common. ssh passes none on, so mpirun is told each name.
#pragma once

#include <map>
#include <set>
#include <string>

#include "launch/slurm.h"

namespace redco {

// parallel.environment: name -> JSON text (base/settings.h, rest). The values are texts or integers.
// UsageError: a name that is no identifier, a value of another type, a zero byte, or OMP_NUM_THREADS, which
// is parallel.threads_per_rank.
Environment parse_environment(const std::map<std::string, std::string>& settings);

// The names of `environment` that ranks inherit from the process that starts them: REDCO_*, OPENBLAS_*,
// OMP_*, GOMP_*, HF_*, and what says which start of a SLURM job this is; with `other_hosts` also PATH and
// LD_LIBRARY_PATH, which programs there need to start.
std::set<std::string> inherited_names(const Environment& environment, bool other_hosts);

}  // namespace redco
