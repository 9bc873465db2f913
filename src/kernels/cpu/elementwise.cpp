#include "kernels/cpu/elementwise.h"

#include <algorithm>

#include "base/error.h"
#include "kernels/cpu/device.h"
#include "kernels/cpu/groups.h"
#include "kernels/cpu/isa/ranges.h"
#include "kernels/cpu/merged_dims.h"
#include "kernels/cpu/mixed.h"
#include "kernels/cpu/pool.h"
#include "kernels/cpu/views.h"
#include "kernels/isa.h"

namespace redco::kernels {

template <class T>
void unary(Unary op, const T* x, T* y, i64 n) {
  for_blocks(n, [&](i64 i, i64 end) { REDCO_ISA_CALL(unary(static_cast<int>(op), x + i, y + i, end - i)); });
}

template <class T>
void unary_backward(Unary op, const T* x, const T* g, T* dx, i64 n) {
  for_blocks(n, [&](i64 i, i64 end) {
    REDCO_ISA_CALL(unary_backward(static_cast<int>(op), x + i, g + i, dx + i, end - i));
  });
}

template <class T>
void unary_backward_of_output(Unary op, const T* y, const T* g, T* dx, i64 n) {
  for_blocks(n, [&](i64 i, i64 end) {
    REDCO_ISA_CALL(unary_backward_of_output(static_cast<int>(op), y + i, g + i, dx + i, end - i));
  });
}

template <class T>
void gated(Unary op, const T* gate, const T* up, T* y, i64 n) {
  for_blocks(n, [&](i64 i, i64 end) {
    REDCO_ISA_CALL(gated(static_cast<int>(op), gate + i, up + i, y + i, end - i));
  });
}

template <class T>
void gated_backward(Unary op, const T* gate, const T* up, const T* g, T* dgate, T* dup, i64 n) {
  for_blocks(n, [&](i64 i, i64 end) {
    REDCO_ISA_CALL(
        gated_backward(static_cast<int>(op), gate + i, up + i, g + i, dgate + i, dup + i, end - i));
  });
}

template <class T>
void binary(Binary op, const T* a, std::span<const i64> a_strides, const T* b, std::span<const i64> b_strides,
            T* out, std::span<const i64> shape) {
  REDCO_CHECK(a_strides.size() == shape.size() && b_strides.size() == shape.size(),
              "strides {} and {}, {} dims", a_strides.size(), b_strides.size(), shape.size());
  i64 n = 1;
  for (i64 s : shape) n *= s;
  if (n == 0) return;
  SmallVector<MergedDim, 8> dims = merged_dims(shape, a_strides, b_strides);
  while (dims.size() < 2) dims.insert(dims.begin(), MergedDim{1, 0, 0});
  const MergedDim rows = dims[dims.size() - 2], cols = dims.back();
  // A plane [rows, cols] is split into groups of rows, and long rows into parts.
  const i64 part = std::min(cols.size, kBlock), group = std::min(rows.size, std::max<i64>(1, kBlock / part));
  const i64 across = ceil_div(cols.size, part), down = ceil_div(rows.size, group);
  const i64 planes = n / (rows.size * cols.size);
  for_each(planes * down * across, n, [&](i64 t) {
    const i64 plane = t / (down * across), r = t / across % down * group, c = t % across * part;
    i64 rest = plane, ia = r * rows.a + c * cols.a, ib = r * rows.b + c * cols.b;
    for (std::size_t d = dims.size() - 2; d-- > 0;) {
      ia += rest % dims[d].size * dims[d].a;
      ib += rest % dims[d].size * dims[d].b;
      rest /= dims[d].size;
    }
    T* o = out + (plane * rows.size + r) * cols.size + c;
    REDCO_ISA_CALL(binary(static_cast<int>(op), a + ia, rows.a, cols.a, b + ib, rows.b, cols.b, o, cols.size,
                          std::min(group, rows.size - r), std::min(part, cols.size - c)));
  });
}

template <class T>
void fill(T* x, T value, i64 n) {
  for_blocks(n, [&](i64 i, i64 end) { std::fill(x + i, x + end, value); });
}

template <class T>
void affine(const T* x, T* y, T mul, T add, i64 n) {
  for_blocks(n, [&](i64 i, i64 end) { REDCO_ISA_CALL(affine(x + i, y + i, mul, add, end - i)); });
}

template <class T>
void axpy(T a, const T* x, T* y, i64 n) {
  for_blocks(n, [&](i64 i, i64 end) { REDCO_ISA_CALL(axpy(a, x + i, y + i, end - i)); });
}

#define INSTANTIATE(T)                                                                             \
  template void unary(Unary, const T*, T*, i64);                                                   \
  template void unary_backward(Unary, const T*, const T*, T*, i64);                                \
  template void unary_backward_of_output(Unary, const T*, const T*, T*, i64);                      \
  template void gated(Unary, const T*, const T*, T*, i64);                                         \
  template void gated_backward(Unary, const T*, const T*, const T*, T*, T*, i64);                  \
  template void binary(Binary, const T*, std::span<const i64>, const T*, std::span<const i64>, T*, \
                       std::span<const i64>);                                                      \
  template void fill(T*, T, i64);                                                                  \
  template void affine(const T*, T*, T, T, i64);                                                   \
  template void axpy(T, const T*, T*, i64);
INSTANTIATE(float)
INSTANTIATE(double)
#undef INSTANTIATE
template void fill(i32*, i32, i64);
template void fill(bf16*, bf16, i64);
template void fill(Group8*, Group8, i64);
template void fill(Group4*, Group4, i64);

void to_bf16(const float* x, bf16* y, i64 n) {
  auto* bits = reinterpret_cast<std::uint16_t*>(y);
  static_assert(sizeof(bf16) == sizeof(std::uint16_t));
  for_blocks(n, [&](i64 i, i64 end) { REDCO_ISA_CALL(to_bf16(x + i, bits + i, end - i)); });
}
void from_bf16(const bf16* x, float* y, i64 n) {
  const auto* bits = reinterpret_cast<const std::uint16_t*>(x);
  for_blocks(n, [&](i64 i, i64 end) { REDCO_ISA_CALL(from_bf16(bits + i, y + i, end - i)); });
}
void to_fp16(const float* x, std::uint16_t* y, i64 n) {
  for_blocks(n, [&](i64 i, i64 end) { REDCO_ISA_CALL(to_fp16(x + i, y + i, end - i)); });
}
void from_fp16(const std::uint16_t* x, float* y, i64 n) {
  for_blocks(n, [&](i64 i, i64 end) { REDCO_ISA_CALL(from_fp16(x + i, y + i, end - i)); });
}

void add_elementwise(Kernels& t) {
  t.fill.run = [](const View& x, const double& value) {
    if (x.dtype == DType::i32) return fill<i32>(pointer<i32>(x), static_cast<i32>(value), x.numel());
    if (x.dtype == DType::bf16) {
      const float wide = static_cast<float>(value);
      bf16 stored;
      to_bf16(&wide, &stored, 1);
      return fill<bf16>(pointer<bf16>(x), stored, x.numel());
    }
    if (is_grouped(x.dtype))
      return visit_groups(x.dtype, [&](auto zero) {
        using G = decltype(zero);
        G group{};  // zeros
        if constexpr (kMade<G>) {
          const std::vector<float> wide(kGroup, static_cast<float>(value));
          to_groups(wide.data(), &group, 1, kGroup);
        } else {
          REDCO_CHECK(value == 0, "{} is filled with {}", name_of(x.dtype), value);
        }
        fill<G>(pointer<G>(x), group, x.leading() * blocks_in<G>(x.last()));
      });
    visit_float(x.dtype, [&](auto zero) {
      using T = decltype(zero);
      fill<T>(pointer<T>(x), static_cast<T>(value), x.numel());
    });
  };
  t.unary.run = [](const Unary& op, const View& x, const View& y) {
    if (x.dtype == DType::f64) return unary(op, pointer<double>(x), pointer<double>(y), x.numel());
    for_f32_pieces<1, 1>({x}, {y},
                         [&](const auto& in, const auto& out, i64 n) { unary(op, in[0], out[0], n); });
  };
  t.binary.run = [](const Binary& op, const View& a, const View& b, const View& y) {
    if (a.dtype == DType::bf16 || b.dtype == DType::bf16 || y.dtype == DType::bf16)
      return for_f32_pieces<2, 1>({a, b}, {y}, [&](const auto& in, const auto& out, i64 n) {
        const std::array<i64, 1> shape = {n}, step = {1};
        binary<float>(op, in[0], step, in[1], step, out[0], shape);
      });
    visit_float(y.dtype, [&](auto zero) {
      using T = decltype(zero);
      binary<T>(op, pointer<T>(a), a.steps(), pointer<T>(b), b.steps(), pointer<T>(y), y.shape);
    });
  };
  t.affine.run = [](const View& x, const View& y, const double& mul, const double& add) {
    if (x.dtype == DType::f64) return affine(pointer<double>(x), pointer<double>(y), mul, add, x.numel());
    for_f32_pieces<1, 1>({x}, {y}, [&](const auto& in, const auto& out, i64 n) {
      affine(in[0], out[0], static_cast<float>(mul), static_cast<float>(add), n);
    });
  };
  t.axpy.run = [](const double& a, const View& x, const View& y) {
    visit_float(x.dtype, [&](auto zero) {
      using T = decltype(zero);
      axpy<T>(static_cast<T>(a), pointer<T>(x), pointer<T>(y), x.numel());
    });
  };
  t.unary_backward.run = [](const Unary& op, const View& x, const View& g, const View& dx) {
    const auto run = [&](const auto* x, const auto* g, auto* dx, i64 n) {
      saves_output(op) ? unary_backward_of_output(op, x, g, dx, n) : unary_backward(op, x, g, dx, n);
    };
    if (x.dtype == DType::f64)
      return run(pointer<double>(x), pointer<double>(g), pointer<double>(dx), x.numel());
    for_f32_pieces<2, 1>({x, g}, {dx},
                         [&](const auto& in, const auto& out, i64 n) { run(in[0], in[1], out[0], n); });
  };
  t.gated.run = [](const Unary& op, const View& gate, const View& up, const View& y) {
    if (y.dtype == DType::f64)
      return gated(op, pointer<double>(gate), pointer<double>(up), pointer<double>(y), y.numel());
    for_f32_pieces<2, 1>({gate, up}, {y},
                         [&](const auto& in, const auto& out, i64 n) { gated(op, in[0], in[1], out[0], n); });
  };
  t.gated_backward.run = [](const Unary& op, const View& gate, const View& up, const View& g,
                            const View& dgate, const View& dup) {
    if (g.dtype == DType::f64)
      return gated_backward(op, pointer<double>(gate), pointer<double>(up), pointer<double>(g),
                            pointer<double>(dgate), pointer<double>(dup), g.numel());
    for_f32_pieces<3, 2>({gate, up, g}, {dgate, dup}, [&](const auto& in, const auto& out, i64 n) {
      gated_backward(op, in[0], in[1], in[2], out[0], out[1], n);
    });
  };
}

}  // namespace redco::kernels
