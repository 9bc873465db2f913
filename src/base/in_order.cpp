#include "base/in_order.h"

#include <algorithm>
#include <cstdlib>

#include "base/process.h"

namespace redco {

int text_threads() {
  const int cpus = usable_cpus();
  const char* omp = std::getenv("OMP_NUM_THREADS");
  const int limit = omp != nullptr ? std::atoi(omp) : 0;
  return limit > 0 ? std::min(limit, cpus) : cpus;
}

}  // namespace redco
