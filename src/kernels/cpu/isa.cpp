#include "kernels/isa.h"

#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <string_view>

#include "base/error.h"

namespace redco::kernels {
namespace {

Isa choose() {
  const char* wanted = std::getenv("REDCO_ISA");
  const Isa best = best_isa();
  if (!wanted || !*wanted) {
    // Intel's CPUs multiply pairs of bf16 by AVX512-BF16 at half the speed of fp32 (Emerald Rapids: 87
    // against 125 GFLOP/s of a core). Without AMX, fp32 is faster there.
    return best == Isa::avx512_bf16 && __builtin_cpu_is("intel") ? Isa::avx512 : best;
  }
  for (Isa isa : kIsas) {
    if (std::string_view(wanted) != name_of(isa)) continue;
    if (isa > best)
      throw UsageError("REDCO_ISA={}, but this CPU supports at most {}; unset REDCO_ISA or set a lower one",
                       wanted, name_of(best));
    return isa;
  }
  throw UsageError("REDCO_ISA={}; expected baseline, avx2, avx512, avx512_bf16 or amx", wanted);
}

// Whether the CPU has AMX, and Linux lets this process use its registers. Linux asks for a permission because
// they make the saved state of a thread 8 KB larger (Documentation/arch/x86/xstate.rst).
bool allows_amx() {
  constexpr unsigned kBf16 = 1u << 22, kTile = 1u << 24;  // of EDX
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || (d & kBf16) == 0 || (d & kTile) == 0) return false;
  constexpr long kRequest = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  return syscall(SYS_arch_prctl, kRequest, kTileData) == 0;
}

std::atomic<Isa>& current() {
  static std::atomic<Isa> isa{choose()};
  return isa;
}

}  // namespace

const char* name_of(Isa isa) {
  static constexpr std::array<const char*, kIsas.size()> kNames = {"baseline", "avx2", "avx512",
                                                                   "avx512_bf16", "amx"};
  return kNames[static_cast<std::size_t>(isa)];
}

Isa best_isa() {
  static const Isa best = [] {
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
  }();
  return best;
}

Isa isa() { return current().load(std::memory_order_relaxed); }

Isa use_isa(Isa isa) {
  REDCO_CHECK(isa <= best_isa(), "this CPU does not support {}", name_of(isa));
  return current().exchange(isa);
}

}  // namespace redco::kernels
