// How far operands of measured kernels are from the cores.
#pragma once

#include <vector>

#include "base/types.h"

namespace redco {

// Bytes since an operand was touched: in the cache of a core, in the rank's share of the last cache, mostly
// in memory, and in memory for sure. A speed changes where the share ends, and slowly after that: a cache
// that is read in order keeps some of what is twice as large.
struct Distances {
  double near = 1 << 20, middle = 0, far = 0, farthest = 0;
  std::vector<double> all() const { return {near, middle, far, farthest}; }
  std::vector<double> ends() const { return {near, far}; }
};
// On this machine, for one of so many ranks. most_bytes: see MeasureOptions.
Distances distances_for(i64 most_bytes, int ranks);

}  // namespace redco
