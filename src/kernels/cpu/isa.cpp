#include "kernels/isa.h"

#include <array>
#include <atomic>
#include <cstdlib>
#include <string_view>

#include "base/error.h"

namespace redco::kernels {
namespace {

Isa choose() {
  const char* wanted = std::getenv("REDCO_ISA");
  const Isa best = best_isa();
  if (!wanted || !*wanted) return best;
  for (Isa isa : {Isa::baseline, Isa::avx2, Isa::avx512, Isa::avx512_bf16}) {
    if (std::string_view(wanted) != name_of(isa)) continue;
    if (isa > best)
      throw UsageError("REDCO_ISA={}, but this CPU supports at most {}; unset REDCO_ISA or set a lower one",
                       wanted, name_of(best));
    return isa;
  }
  throw UsageError("REDCO_ISA={}; expected baseline, avx2, avx512 or avx512_bf16", wanted);
}

std::atomic<Isa>& current() {
  static std::atomic<Isa> isa{choose()};
  return isa;
}

}  // namespace

const char* name_of(Isa isa) {
  static constexpr std::array<const char*, 4> kNames = {"baseline", "avx2", "avx512", "avx512_bf16"};
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
    if (v3 && v4 && __builtin_cpu_supports("avx512bf16")) return Isa::avx512_bf16;
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
