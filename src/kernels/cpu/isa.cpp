#include "kernels/isa.h"

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
  for (Isa isa : {Isa::baseline, Isa::avx2, Isa::avx512}) {
    if (std::string_view(wanted) != name_of(isa)) continue;
    if (isa > best)
      throw UsageError("REDCO_ISA={}, but this CPU supports at most {}; unset REDCO_ISA or set a lower one",
                       wanted, name_of(best));
    return isa;
  }
  throw UsageError("REDCO_ISA={}; expected baseline, avx2 or avx512", wanted);
}

std::atomic<Isa>& current() {
  static std::atomic<Isa> isa{choose()};
  return isa;
}

}  // namespace

const char* name_of(Isa isa) {
  return isa == Isa::avx512 ? "avx512" : isa == Isa::avx2 ? "avx2" : "baseline";
}

Isa best_isa() {
  static const Isa best = [] {
    __builtin_cpu_init();
    if (__builtin_cpu_supports("x86-64-v4")) return Isa::avx512;
    if (__builtin_cpu_supports("x86-64-v3")) return Isa::avx2;
    return Isa::baseline;
  }();
  return best;
}

Isa isa() { return current().load(std::memory_order_relaxed); }

Isa use_isa(Isa isa) {
  REDCO_CHECK(isa <= best_isa(), "this CPU does not support {}", name_of(isa));
  return current().exchange(isa);
}

}  // namespace redco::kernels
