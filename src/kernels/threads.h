// The only thread pool (OpenMP, shared with OpenBLAS). Results never depend on the number of threads: loops
// that reduce split their work into chunks that depend only on the shape.
#pragma once

#include <string>

#include "base/types.h"

namespace redco::kernels {

// Sets the number of threads for the kernels of the calling rank (an OpenMP per-thread ICV, so ranks that are
// threads have separate values).
void set_threads(int n);
int threads();
// Throws Error if OpenBLAS is not the OpenMP build, because two pools would compete for the cores. Called
// once at start.
void check_blas();
// The name of the kernels that OpenBLAS selected for this CPU, e.g. "SkylakeX".
std::string blas_core();
// "OpenBLAS 0.3.21 (OpenMP, SkylakeX), isa avx512" for `env` and logs.
std::string describe();

}  // namespace redco::kernels
