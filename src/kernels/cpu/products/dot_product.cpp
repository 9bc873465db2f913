#include "kernels/cpu/products/dot_product.h"

#include "kernels/cpu/products/packing.h"

namespace redco::kernels {

static_assert(DotProduct::kDeepest <= DotTiles::kDeepest);
i64 DotProduct::size_of_b() const { return DotTiles::right_size(n, k); }
i64 DotProduct::size_of_a(i64 m) const { return DotTiles::left_size(m, k); }
void DotProduct::pack(const Operand<bf16>& b, float* to) const {
  DotTiles::pack_right(b.data, b.ld, b.trans, n, k, reinterpret_cast<u32*>(to));
}
template <class T>
void DotProduct::multiply(i64 m, const Operand<T>& a, const float* b, bool add, float* y, i64 ldy,
                          float* room) const {
  auto* const to = reinterpret_cast<u32*>(room);
  const auto left = [&] {
    if constexpr (std::is_same_v<T, bf16>) {
      return InPairs<DotTiles>::left_of(a.data, a.ld, a.trans, m, k, to);
    } else {
      return DotTiles::pack_left(a.data, a.ld, a.trans, m, k, to);
    }
  }();
  TileOutput out{.y = y, .ld = ldy};
  if (add) {
    out.before = y;
    out.ld_before = ldy;
  }
  DotTiles::multiply(m, n, k, left, reinterpret_cast<const u32*>(b), out);
}
template void DotProduct::multiply(i64, const Operand<float>&, const float*, bool, float*, i64, float*) const;
template void DotProduct::multiply(i64, const Operand<bf16>&, const float*, bool, float*, i64, float*) const;

}  // namespace redco::kernels
