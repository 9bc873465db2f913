#include "pipeline/n_readers.h"

#include <algorithm>

#include "kernels/threads.h"

namespace redco {

int n_readers(Reading reading, std::optional<i64> n_workers) {
  constexpr int kMostByDefault = 4;
  if (reading == Reading::rank_only) return 0;
  if (n_workers) return static_cast<int>(*n_workers);
  return reading == Reading::costly ? std::clamp(kernels::threads(), 1, kMostByDefault) : 1;
}

}  // namespace redco
