// Drift: replicas that should hold equal parameters but differ (a broken machine, different libraries).
#pragma once

#include "base/types.h"
#include "nn/param_tree.h"

namespace redco {

// Compares checksums of the parameters: of all of them over dp, and of those replicated over mp also over
// that axis. If they differ, Error(rank_failed) on all ranks names ranks and hosts. Reads the parameters
// once. Collective.
void check_replicas(const ParamTree& params, i64 step);

}  // namespace redco
