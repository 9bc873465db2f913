// Micro-batches of a step.
#pragma once

#include <vector>

#include "base/types.h"

namespace redco {

// How `rows` examples are distributed to replicas. Rows of micro-batch m: [m * dp * per_device, ...), split
// by the border function, so 3 remaining rows on dp 2 are 2 + 1.
struct MicroBatch {
  i64 first = 0;  // offset in the step's rows
  i64 rows = 0;
};
std::vector<MicroBatch> micro_batches(i64 rows, i64 per_device, int dp);

}  // namespace redco
