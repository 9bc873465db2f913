// Copies of boxes: memcpy of contiguous runs, or square tiles where a transpose leaves neither side
// contiguous.
#include <cstring>
#include <utility>

#include "base/error.h"
#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/merged_dims.h"
#include "kernels/cpu/pool.h"

namespace redco::kernels {
namespace {

using Dim = MergedDim;  // a: of the input, b: of the output

// Copies [rows, cols] of elements E with any strides, in tiles that keep the cache lines of both sides in L1.
template <class E>
void copy_plane(const E* in, E* out, Dim rows, Dim cols) {
  constexpr i64 kTile = 32;
  for (i64 r0 = 0; r0 < rows.size; r0 += kTile) {
    const i64 r1 = std::min(rows.size, r0 + kTile);
    for (i64 c0 = 0; c0 < cols.size; c0 += kTile) {
      const i64 c1 = std::min(cols.size, c0 + kTile);
      for (i64 r = r0; r < r1; ++r)
        for (i64 c = c0; c < c1; ++c) out[r * rows.b + c * cols.b] = in[r * rows.a + c * cols.a];
    }
  }
}

template <class E>
void copy_box(const E* in, E* out, SmallVector<Dim, 8> dims, i64 n) {
  // The last dim is the inner loop. Of the two dims of the plane, cols is the one contiguous in `out`.
  if (dims.back().a != 1 || dims.back().b != 1) {
    for (std::size_t d = 0; d + 1 < dims.size();
         ++d)  // move the dim that is contiguous in `in` or `out` to the position before the last
      if (dims[d].a == 1 || dims[d].b == 1)
        std::rotate(dims.begin() + d, dims.begin() + d + 1, dims.end() - 1);
    if (dims.size() >= 2 && dims[dims.size() - 2].b == 1 && dims.back().b != 1)
      std::swap(dims[dims.size() - 2], dims.back());
  }
  while (dims.size() < 2) dims.insert(dims.begin(), Dim{1, 0, 0});
  const Dim rows = dims[dims.size() - 2], cols = dims.back();
  const bool contiguous = cols.a == 1 && cols.b == 1;
  const i64 part = std::min(cols.size, kBlock), group = std::min(rows.size, std::max<i64>(32, kBlock / part));
  const i64 across = ceil_div(cols.size, part), down = ceil_div(rows.size, group);
  const i64 planes = n / (rows.size * cols.size);
  const i64 cost = contiguous ? n * static_cast<i64>(sizeof(E)) / 16 : n;
  for_each(planes * down * across, cost, [&](i64 t) {
    i64 rest = t / (down * across), i = 0, o = 0;
    for (std::size_t d = dims.size() - 2; d-- > 0;) {
      i += rest % dims[d].size * dims[d].a;
      o += rest % dims[d].size * dims[d].b;
      rest /= dims[d].size;
    }
    const i64 r = t / across % down * group, c = t % across * part;
    const i64 height = std::min(group, rows.size - r), width = std::min(part, cols.size - c);
    const E* from = in + i + r * rows.a + c * cols.a;
    E* to = out + o + r * rows.b + c * cols.b;
    if (contiguous) {
      for (i64 k = 0; k < height; ++k)
        std::memcpy(to + k * rows.b, from + k * rows.a, static_cast<std::size_t>(width) * sizeof(E));
    } else {
      copy_plane(from, to, Dim{height, rows.a, rows.b}, Dim{width, cols.a, cols.b});
    }
  });
}

}  // namespace

void copy_strided(const void* in, std::span<const i64> in_strides, void* out,
                  std::span<const i64> out_strides, std::span<const i64> shape, i64 elem_size) {
  REDCO_CHECK(in_strides.size() == shape.size() && out_strides.size() == shape.size(),
              "strides {} and {}, {} dims", in_strides.size(), out_strides.size(), shape.size());
  i64 n = 1;
  for (i64 s : shape) n *= s;
  if (n == 0) return;
  SmallVector<Dim, 8> dims = merged_dims(shape, in_strides, out_strides);
  if (dims.empty()) dims.push_back({1, 1, 1});
  switch (elem_size) {
    case 1:
      return copy_box(static_cast<const std::uint8_t*>(in), static_cast<std::uint8_t*>(out), dims, n);
    case 2:
      return copy_box(static_cast<const std::uint16_t*>(in), static_cast<std::uint16_t*>(out), dims, n);
    case 4:
      return copy_box(static_cast<const std::uint32_t*>(in), static_cast<std::uint32_t*>(out), dims, n);
    case 8:
      return copy_box(static_cast<const std::uint64_t*>(in), static_cast<std::uint64_t*>(out), dims, n);
    default:
      REDCO_CHECK(false, "elem_size is {}; expected 1, 2, 4 or 8", elem_size);
  }
}

}  // namespace redco::kernels
