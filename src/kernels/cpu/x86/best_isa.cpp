#include "kernels/cpu/best_isa.h"

#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace redco::kernels {
namespace {

// Whether the CPU has AMX, and Linux lets this process use its registers. Linux asks for a permission because
// they make the saved state of a thread 8 KB larger (Documentation/arch/x86/xstate.rst).
bool allows_amx() {
  constexpr unsigned kBf16 = 1u << 22, kTile = 1u << 24;  // of EDX
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || (d & kBf16) == 0 || (d & kTile) == 0) return false;
  constexpr long kRequest = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  return syscall(SYS_arch_prctl, kRequest, kTileData) == 0;
}

}  // namespace

Isa widest_isa() {
  __builtin_cpu_init();
  // The features of the levels x86-64-v3 and -v4 that compilers can ask for; clang 14 can't ask for the
  // levels.
  const auto v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") &&
                  __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("fma");
  const auto v4 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                  __builtin_cpu_supports("avx512vl");
  const auto products = __builtin_cpu_supports("avx512bf16") && __builtin_cpu_supports("avx512vnni");
  if (v3 && v4 && products) return allows_amx() ? Isa::amx : Isa::avx512_bf16;
  return v3 && v4 ? Isa::avx512 : v3 ? Isa::avx2 : Isa::baseline;
}

Isa fastest_isa(Isa best) {
  // Intel's CPUs multiply pairs of bf16 by AVX512-BF16 at half the speed of fp32 (Emerald Rapids: 87 against
  // 125 GFLOP/s of a core). Without AMX, fp32 is faster there.
  return best == Isa::avx512_bf16 && __builtin_cpu_is("intel") ? Isa::avx512 : best;
}

}  // namespace redco::kernels
