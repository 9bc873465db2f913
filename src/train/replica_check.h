// Drift: replicas that should hold the same bits and no longer do (a broken machine, different libraries).
#pragma once

#include "base/types.h"
#include "nn/param_tree.h"

namespace redco {

// Compares checksums of the parameters: of all of them over dp, and of those that are replicated over mp over
// that axis too. Error(rank_failed) on all ranks, naming ranks and hosts, where they differ. Reads the
// parameters once. Collective.
void check_replicas(const ParamTree& params, i64 step);

}  // namespace redco
