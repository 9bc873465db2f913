// The order in which inputs of different lengths are distributed to replicas.
#pragma once

#include <functional>
#include <vector>

#include "base/types.h"

namespace redco {

// Indices of n inputs, the longest first. Dealt to the replicas in turn, they are about equal work.
std::vector<i64> longest_first(i64 n, const std::function<i64(i64)>& length);

}  // namespace redco
