#include "kernels/isa.h"

#include <atomic>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/error.h"
#include "kernels/cpu/best_isa.h"

namespace redco::kernels {
namespace {

// "baseline, avx2 or avx512"
std::string known_names() {
  std::string names;
  for (std::size_t i = 0; i < kIsas.size(); ++i)
    names += (i == 0 ? "" : i + 1 < kIsas.size() ? ", " : " or ") + std::string(name_of(kIsas[i]));
  return names;
}

Isa choose() {
  const char* wanted = std::getenv("REDCO_ISA");
  const Isa best = best_isa();
  if (!wanted || !*wanted) return fastest_isa(best);
  for (Isa isa : kIsas) {
    if (std::string_view(wanted) != name_of(isa)) continue;
    if (isa > best)
      throw UsageError("REDCO_ISA={}, but this CPU supports at most {}; unset REDCO_ISA or set a lower one",
                       wanted, name_of(best));
    return isa;
  }
  throw UsageError("REDCO_ISA={}; expected {}", wanted, known_names());
}

std::atomic<Isa>& current() {
  static std::atomic<Isa> isa{choose()};
  return isa;
}

}  // namespace

const char* name_of(Isa isa) {
  switch (isa) {
    case Isa::avx2:
      return "avx2";
    case Isa::avx512:
      return "avx512";
    case Isa::avx512_bf16:
      return "avx512_bf16";
    case Isa::amx:
      return "amx";
    case Isa::baseline:
      break;
  }
#if defined(__aarch64__)
  return "neon";
#else
  return "baseline";
#endif
}

Isa best_isa() {
  static const Isa best = widest_isa();
  return best;
}

Isa isa() { return current().load(std::memory_order_relaxed); }

Isa use_isa(Isa isa) {
  REDCO_CHECK(isa <= best_isa(), "this CPU does not support {}", name_of(isa));
  return current().exchange(isa);
}

}  // namespace redco::kernels
