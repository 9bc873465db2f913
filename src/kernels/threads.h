// The only thread pool (OpenMP, shared with OpenBLAS). Results never depend on the number of threads: loops
// that reduce split their work into chunks that depend only on the shape.
#pragma once

#include <string>

#include "base/types.h"
#include "kernels/isa.h"

namespace redco::kernels {

// Sets the number of threads for the kernels of the calling rank (an OpenMP per-thread ICV, so ranks that are
// threads have separate values), and for its sums and copies of messages (base/parallel.h).
void set_threads(int n);
int threads();
// Throws Error if OpenBLAS is not the OpenMP build, because two pools would compete for the cores. Called
// once at start.
void check_blas();
// The name of the kernels that OpenBLAS selected for this CPU, e.g. "SkylakeX".
std::string blas_core();
// The core type that OpenBLAS should use instead, if it has chosen kernels without AVX because it does not
// know this CPU; "" if its choice is good. (0.3.21 takes Prescott on Intel's CPUs of 2023 and later: a fifth
// of the speed.) `isa`: of redco's own kernels, which REDCO_ISA limits.
std::string better_blas_core(const std::string& chosen, Isa isa);
// Starts the program again with that core type, if OPENBLAS_CORETYPE is not set: OpenBLAS reads it when it is
// loaded. Returns otherwise. The started program has the same process id, arguments and environment. The
// first call of main, before threads and MPI.
void use_better_blas_core(char** argv);
// "OpenBLAS 0.3.21 (OpenMP, SkylakeX), isa avx512" for `env` and logs.
std::string describe();

}  // namespace redco::kernels
