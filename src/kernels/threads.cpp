#include "kernels/threads.h"

#include <cblas.h>
#include <omp.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <string>

#include "base/activity.h"
#include "base/error.h"
#include "kernels/blas.h"
#include "kernels/isa.h"
#include "kernels/pool.h"

namespace redco::kernels {

void set_threads(int n) {
  REDCO_CHECK(n >= 1, "set_threads({})", n);
  single_threaded_blas();  // before setting our thread count, because its first call changes it
  omp_set_num_threads(n);
}

int threads() { return omp_get_max_threads(); }

void parallel_for(i64 n, i64 grain, const std::function<void(i64, i64)>& f) {
  if (n <= 0) return;
  activity::tick();
  const i64 chunks = std::min<i64>(ceil_div(n, std::max<i64>(1, grain)), 4 * static_cast<i64>(threads()));
  if (chunks <= 1 || threads() == 1 || omp_in_parallel()) return f(0, n);
  const i64 size = ceil_div(n, chunks);
  std::exception_ptr error;  // of the first chunk that throws; the others still finish
  std::atomic<bool> failed{false};
#pragma omp parallel for num_threads(static_cast <int>(std::min <i64>(chunks, threads()))) \
    schedule(dynamic, 1)
  for (i64 c = 0; c < chunks; ++c) {
    const i64 begin = c * size, end = std::min(n, begin + size);
    if (begin >= end || failed.load(std::memory_order_relaxed)) continue;
    try {
      f(begin, end);
    } catch (...) {
      if (!failed.exchange(true)) error = std::current_exception();
    }
  }
  if (error) std::rethrow_exception(error);
}

void check_blas() {
  constexpr int kOpenMp = 2;
  if (const int kind = openblas_get_parallel(); kind != kOpenMp)
    throw Error(
        ExitCode::usage,
        fmt::format("[blas] the OpenBLAS found at run time ({}) is the {} build; redco needs the OpenMP one "
                    "(two thread pools would compete for the cores); install libopenblas0-openmp, or put its "
                    "folder first in LD_LIBRARY_PATH",
                    openblas_get_config(), kind == 1 ? "pthreads" : "sequential"));
}

std::string blas_core() { return openblas_get_corename(); }

std::string describe() {
  std::string config = openblas_get_config();  // "OpenBLAS 0.3.21 NO_LAPACKE ..."
  const auto space = config.find(' ', config.find(' ') + 1);
  const int kind = openblas_get_parallel();
  return fmt::format("{} ({}, {}), isa {}", config.substr(0, space),
                     kind == 2   ? "OpenMP"
                     : kind == 1 ? "pthreads"
                                 : "sequential",
                     blas_core(), name_of(isa()));
}

}  // namespace redco::kernels
