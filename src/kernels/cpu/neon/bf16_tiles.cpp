// arm64 has no Isa with products of bf16 pairs, so unit_of() never selects these classes. The functions exist
// because the code for packed operands names both units on all CPUs.
#include "kernels/cpu/products/bf16_tiles.h"

#include "base/error.h"

namespace redco::kernels {
namespace {

[[noreturn]] void unsupported() {
  throw BugError("products of bf16 pairs are selected on a CPU without them");
}

}  // namespace

#define REDCO_UNSUPPORTED_OF(Tiles, T)                              \
  template <>                                                       \
  LeftPairs Tiles::pack_left(const T*, i64, bool, i64, i64, u32*) { \
    unsupported();                                                  \
  }                                                                 \
  template <>                                                       \
  void Tiles::pack_right(const T*, i64, bool, i64, i64, u32*) {     \
    unsupported();                                                  \
  }
#define REDCO_UNSUPPORTED(Tiles)     \
  REDCO_UNSUPPORTED_OF(Tiles, float) \
  REDCO_UNSUPPORTED_OF(Tiles, bf16)  \
  void Tiles::multiply(i64, i64, i64, const LeftPairs&, const u32*, const TileOutput&) { unsupported(); }

REDCO_UNSUPPORTED(DotTiles)
REDCO_UNSUPPORTED(AmxTiles)

}  // namespace redco::kernels
