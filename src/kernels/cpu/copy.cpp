// Copies of boxes: memcpy of contiguous runs, or square tiles where a transpose leaves neither side
// contiguous.
#include <cstring>
#include <utility>

#include "base/error.h"
#include "kernels/cpu/device.h"
#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/groups.h"
#include "kernels/cpu/merged_dims.h"
#include "kernels/cpu/pool.h"
#include "kernels/cpu/views.h"

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

namespace {

template <class From, class To>
void cast_elements(const View& x, const View& y) {
  const From* const from = pointer<From>(x);
  To* const to = pointer<To>(y);
  for_blocks(x.numel(), [&](i64 i, i64 end) {
    for (; i < end; ++i) to[i] = static_cast<To>(from[i]);
  });
}

template <class From>
void cast_from(const View& x, const View& y) {
  if (y.dtype == DType::i32) return cast_elements<From, i32>(x, y);
  visit_float(y.dtype, [&](auto zero) { cast_elements<From, decltype(zero)>(x, y); });
}

// Between bf16 and a floating type; fp64 is rounded to fp32 first.
void cast_to_bf16(const View& x, const View& y) {
  if (x.dtype == DType::f32) return to_bf16(pointer<float>(x), pointer<bf16>(y), x.numel());
  const double* const from = pointer<double>(x);
  bf16* const to = pointer<bf16>(y);
  for (i64 i = 0; i < x.numel(); ++i) {
    const float value = static_cast<float>(from[i]);
    to_bf16(&value, to + i, 1);
  }
}
void cast_from_bf16(const View& x, const View& y) {
  if (y.dtype == DType::f32) return from_bf16(pointer<bf16>(x), pointer<float>(y), x.numel());
  const bf16* const from = pointer<bf16>(x);
  double* const to = pointer<double>(y);
  for (i64 i = 0; i < x.numel(); ++i) {
    float value;
    from_bf16(from + i, &value, 1);
    to[i] = value;
  }
}

// Rows of the last dim between f32 and a grouped type.
void cast_to_groups(const View& x, const View& y) {
  REDCO_CHECK(x.dtype == DType::f32, "a cast from {} to {}", name_of(x.dtype), name_of(y.dtype));
  visit_groups(y.dtype, [&](auto zero) {
    using G = decltype(zero);
    if constexpr (kMade<G>) {
      to_groups<G>(pointer<float>(x), pointer<G>(y), y.leading(), y.last());
    } else {
      REDCO_CHECK(false, "a cast to {}, which is only read from files", name_of(y.dtype));
    }
  });
}
void cast_from_groups(const View& x, const View& y) {
  REDCO_CHECK(y.dtype == DType::f32, "a cast from {} to {}", name_of(x.dtype), name_of(y.dtype));
  visit_groups(x.dtype, [&](auto zero) {
    using G = decltype(zero);
    from_groups<G>(pointer<G>(x), pointer<float>(y), x.leading(), x.last());
  });
}

// Elements of a grouped type as bytes; other views are returned unchanged. Groups are not cut.
View as_bytes(const View& v) {
  if (!is_grouped(v.dtype)) return v;
  View bytes = v;
  bytes.strides = v.steps();
  for (i64& step : bytes.strides) step = bytes_of(v.dtype, step);
  bytes.strides.back() = 1;
  bytes.shape.back() = bytes_of(v.dtype, stored_numel(v.dtype, {v.last()}));
  return bytes;
}

}  // namespace

void add_copies(Kernels& t) {
  t.copy.run = [](const View& x, const View& y) {
    const View from = as_bytes(x), to = as_bytes(y);
    copy_strided(pointer<void>(x), from.steps(), pointer<void>(y), to.steps(), to.shape,
                 is_grouped(x.dtype) ? 1 : size_of(x.dtype));
  };
  t.cast.run = [](const View& x, const View& y) {
    if (is_grouped(y.dtype)) return cast_to_groups(x, y);
    if (is_grouped(x.dtype)) return cast_from_groups(x, y);
    if (y.dtype == DType::bf16) return cast_to_bf16(x, y);
    if (x.dtype == DType::bf16) return cast_from_bf16(x, y);
    if (x.dtype == DType::i32) return cast_from<i32>(x, y);
    visit_float(x.dtype, [&](auto zero) { cast_from<decltype(zero)>(x, y); });
  };
}

}  // namespace redco::kernels
