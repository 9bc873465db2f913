// Measures this machine for the cost model: each kind of kernel at a few sizes, with operands in the caches
// and in memory, and the collectives. What is measured is what runs: the kernels of the device's table.
#pragma once

#include "plan/machine_speeds.h"
#include "tensor/context.h"

namespace redco {

struct MeasureOptions {
  double seconds_each = 0.0025;  // least time of a timed batch of calls
  int batches = 3;               // the shortest counts
  // At most so many bytes of operands, for tests; 0: as many as the size of the last cache demands.
  i64 most_bytes = 0;
  double largest = 1;  // factor of the largest sizes of products, for tests
};

// Collective: the ranks of the context compute at the same time, as in a run, so that they share caches and
// memory as they do there. Times are means over the ranks.
MachineSpeeds measure_speeds(Context& context, const SpeedKey& key, const MeasureOptions& options = {});

}  // namespace redco
