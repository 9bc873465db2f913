#include "kernels/threads.h"

#include <cblas.h>
#include <omp.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <set>
#include <string>

#include "base/error.h"
#include "base/parallel.h"
#include "kernels/cpu/blas.h"
#include "kernels/isa.h"

namespace redco::kernels {

namespace {

void loop(i64 n, const void* of, parallel::Body body) {
  const int t = omp_in_parallel() ? 1 : static_cast<int>(std::min<i64>(n, omp_get_max_threads()));
#pragma omp parallel for num_threads(t) schedule(static) if (t > 1)
  for (i64 i = 0; i < n; ++i) body(of, i);
}

}  // namespace

void set_threads(int n) {
  REDCO_CHECK(n >= 1, "set_threads({})", n);
  omp_set_num_threads(n);
  parallel::set(n > 1 ? loop : nullptr, n);
}

int threads() { return omp_get_max_threads(); }

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

std::string better_blas_core(const std::string& chosen, Isa isa) {
  // OpenBLAS's core types without AVX (driver/others/dynamic.c).
  static const std::set<std::string> kWithoutAvx = {
      "Katmai",     "Coppermine", "Northwood", "Prescott", "Banias",       "Atom",      "Core2",  "Penryn",
      "Dunnington", "Nehalem",    "Athlon",    "Opteron",  "Opteron_SSE3", "Barcelona", "Bobcat", "Nano"};
  if (!kWithoutAvx.contains(chosen) || isa == Isa::baseline) return "";
  return isa >= Isa::avx512 ? "SkylakeX" : "Haswell";
}

void use_better_blas_core(char** argv) {
  constexpr const char *kCore = "OPENBLAS_CORETYPE", *kStarted = "REDCO_STARTED_AGAIN";
  if (std::getenv(kStarted)) {  // children make their own choice: another host may have another CPU
    unsetenv(kStarted);
    unsetenv(kCore);
    return;
  }
  if (std::getenv(kCore)) return;
  std::string better;
  try {
    better = better_blas_core(blas_core(), isa());
  } catch (const Error&) {  // REDCO_ISA is wrong; the first command that computes reports it
    return;
  }
  if (better.empty()) return;
  setenv(kCore, better.c_str(), 1);
  setenv(kStarted, "1", 1);
  execv("/proc/self/exe", argv);
  unsetenv(kCore);  // it can't be started again: slow, but right
  unsetenv(kStarted);
}

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
