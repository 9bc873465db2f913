// The one thread pool (OpenMP, shared with OpenBLAS). Results never depend on the number of threads: loops
// that reduce cut their work into chunks fixed by the shape alone.
#pragma once

#include <functional>

#include "base/types.h"

namespace redco::kernels {

// Threads the calling rank's kernels may use (OpenMP's per-thread ICV: ranks as threads each have their own).
void set_threads(int n);
int threads();
// Calls f(begin, end) over [0, n) in chunks of at least `grain`, on the pool; nested calls run in place.
void parallel_for(i64 n, i64 grain, const std::function<void(i64, i64)>& f);
// Throws Error when OpenBLAS is not the OpenMP build (two pools fight for the cores). Called once at start.
void check_blas();
// The kernels that OpenBLAS chose for this CPU: "SkylakeX".
std::string blas_core();
// "OpenBLAS 0.3.21 (OpenMP, SkylakeX), isa avx512" for `env` and logs.
std::string describe();

}  // namespace redco::kernels
