// The instruction set of the hot loops. Files of src/kernels/cpu/isa are compiled once per Isa, each into a
// separate namespace (kernels::baseline, ::avx2, ::avx512); REDCO_ISA_CALL selects one at run time.
#pragma once

#include <array>

namespace redco::kernels {

// x86-64-v2, -v3, -v4, -v4 with products of bf16 pairs (AVX512-BF16) and of bytes (AVX512-VNNI), and with
// tiles of pairs too (AMX). The last two have their own products of bf16 (kernels/cpu/products/bf16_tiles.h)
// and int4. On arm64 the baseline is Armv8-A, whose vectors are NEON, and its name is "neon".
enum class Isa { baseline, avx2, avx512, avx512_bf16, amx };
// Those of this kind of CPU.
#if defined(__aarch64__)
inline constexpr std::array kIsas = {Isa::baseline};
#else
inline constexpr std::array kIsas = {Isa::baseline, Isa::avx2, Isa::avx512, Isa::avx512_bf16, Isa::amx};
#endif

const char* name_of(Isa isa);
// The widest instruction set that this CPU supports.
Isa best_isa();
// The instruction set in use: the fastest one, or the one that the environment variable REDCO_ISA names.
// Throws UsageError if REDCO_ISA is not a name, or this CPU does not support it.
Isa isa();
// For tests and benchmarks: uses `isa` in the whole process and returns the previous one. REQUIRES: isa <=
// best_isa().
Isa use_isa(Isa isa);

}  // namespace redco::kernels

// REDCO_ISA_CALL(f(args)): calls f in the namespace of the instruction set in use.
#if defined(__aarch64__)
#define REDCO_ISA_CALL(...) ::redco::kernels::baseline::__VA_ARGS__
#else
#define REDCO_ISA_CALL(...)            \
  [&] {                                \
    switch (::redco::kernels::isa()) { \
      case Isa::amx:                   \
      case Isa::avx512_bf16:           \
      case Isa::avx512:                \
        return avx512::__VA_ARGS__;    \
      case Isa::avx2:                  \
        return avx2::__VA_ARGS__;      \
      default:                         \
        return baseline::__VA_ARGS__;  \
    }                                  \
  }()
#endif
