#include "train/micro_batches.h"

#include <algorithm>

namespace redco {

std::vector<MicroBatch> micro_batches(i64 rows, i64 per_device, int dp) {
  std::vector<MicroBatch> out;
  const i64 each = per_device * dp;
  for (i64 first = 0; first < rows; first += each) out.push_back({first, std::min(each, rows - first)});
  return out;
}

}  // namespace redco
