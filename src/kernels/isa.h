// The instruction set of the hot loops. Files of src/kernels/isa are compiled once per Isa, each into a
// namespace of its own (kernels::baseline, ::avx2, ::avx512); REDCO_ISA_CALL picks one at run time.
#pragma once

namespace redco::kernels {

enum class Isa { baseline, avx2, avx512 };  // x86-64-v2, -v3, -v4

const char* name_of(Isa isa);
// The widest this CPU runs.
Isa best_isa();
// The one in use: best_isa(), or less when the environment's REDCO_ISA says so. Throws UsageError for a
// REDCO_ISA that is no name, or one this CPU lacks.
Isa isa();
// For tests and benchmarks: uses `isa` (REQUIRES isa <= best_isa()) in the whole process; gives the one
// before.
Isa use_isa(Isa isa);

}  // namespace redco::kernels

// REDCO_ISA_CALL(f(args)): f of the namespace in use.
#define REDCO_ISA_CALL(...)            \
  [&] {                                \
    switch (::redco::kernels::isa()) { \
      case Isa::avx512:                \
        return avx512::__VA_ARGS__;    \
      case Isa::avx2:                  \
        return avx2::__VA_ARGS__;      \
      default:                         \
        return baseline::__VA_ARGS__;  \
    }                                  \
  }()
