// Products with an im2col matrix, whose rows are runs of an image; the accumulators stay in registers.
#include "kernels/cpu/isa/conv.h"

#include <type_traits>

#include "kernels/cpu/isa/registers.h"

// Vectors wider than the registers are split; none is passed to a function that is not inlined.
#pragma GCC diagnostic ignored "-Wpsabi"

namespace redco::kernels::REDCO_ISA {
namespace {

constexpr bool kMany = kRegisters == 32;

template <class T>
struct Vector {
  typedef T type __attribute__((vector_size(kBytes)));
  static constexpr i64 kWidth = kBytes / static_cast<i64>(sizeof(T));
};

// M outputs at N vectors of positions.
template <class T, int M, int N>
inline void product_tile(i64 runs, const T* w, const T* base, const i64* offset, T* out, i64 ld) {
  using V = typename Vector<T>::type;
  constexpr i64 W = Vector<T>::kWidth;
  V acc[M][N] = {};
  for (i64 r = 0; r < runs; ++r) {
    const T* b = base + offset[r];
    V bv[N];
#pragma GCC unroll 8
    for (int j = 0; j < N; ++j) __builtin_memcpy(&bv[j], b + j * W, sizeof(V));
#pragma GCC unroll 8
    for (int i = 0; i < M; ++i) {
      const T a = w[i * runs + r];
#pragma GCC unroll 8
      for (int j = 0; j < N; ++j) acc[i][j] += a * bv[j];
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < M; ++i)
#pragma GCC unroll 8
    for (int j = 0; j < N; ++j) __builtin_memcpy(out + i * ld + j * W, &acc[i][j], sizeof(V));
}

template <class T, int N>
inline void product_column(i64 outputs, i64 runs, const T* w, const T* base, const i64* offset, T* out,
                           i64 ld) {
  constexpr int M = kMany ? 8 : 4;
  i64 o = 0;
  for (; o + M <= outputs; o += M) product_tile<T, M, N>(runs, w + o * runs, base, offset, out + o * ld, ld);
  for (; o + 2 <= outputs; o += 2) product_tile<T, 2, N>(runs, w + o * runs, base, offset, out + o * ld, ld);
  for (; o < outputs; ++o) product_tile<T, 1, N>(runs, w + o * runs, base, offset, out + o * ld, ld);
}

// M rows of g times N runs.
template <class T, int M, int N>
inline void dots_tile(i64 vectors, i64 images, const T* g, i64 ld, i64 g_image, const T* base, i64 base_image,
                      const i64* offset, T* dw, i64 runs) {
  using V = typename Vector<T>::type;
  constexpr i64 W = Vector<T>::kWidth;
  V acc[M][N] = {};
  for (i64 n = 0; n < images; ++n) {
    const T* rows[N];
    for (int j = 0; j < N; ++j) rows[j] = base + n * base_image + offset[j];
    for (i64 p = 0; p < vectors * W; p += W) {
      V gv[M];
#pragma GCC unroll 8
      for (int i = 0; i < M; ++i) __builtin_memcpy(&gv[i], g + n * g_image + i * ld + p, sizeof(V));
#pragma GCC unroll 8
      for (int j = 0; j < N; ++j) {
        V b;
        __builtin_memcpy(&b, rows[j] + p, sizeof(V));
#pragma GCC unroll 8
        for (int i = 0; i < M; ++i) acc[i][j] += gv[i] * b;
      }
    }
  }
  for (int i = 0; i < M; ++i)
    for (int j = 0; j < N; ++j) {
      T s = 0;
      for (int k = 0; k < W; ++k) s += acc[i][j][k];
      dw[i * runs + j] = s;
    }
}

template <class T, int M>
inline void dots_rows(i64 vectors, i64 runs, i64 images, const T* g, i64 ld, i64 g_image, const T* base,
                      i64 base_image, const i64* offset, T* dw) {
  constexpr int N = kMany ? 6 : 3;
  i64 r = 0;
  for (; r + N <= runs; r += N)
    dots_tile<T, M, N>(vectors, images, g, ld, g_image, base, base_image, offset + r, dw + r, runs);
  for (; r + 3 <= runs; r += 3)
    dots_tile<T, M, 3>(vectors, images, g, ld, g_image, base, base_image, offset + r, dw + r, runs);
  for (; r < runs; ++r)
    dots_tile<T, M, 1>(vectors, images, g, ld, g_image, base, base_image, offset + r, dw + r, runs);
}

}  // namespace

template <class T>
void gemm_im2col(i64 outputs, i64 length, i64 runs, const T* w, const T* base, const i64* offset, T* out,
                 i64 ld) {
  constexpr i64 W = Vector<T>::kWidth;
  const i64 vectors = (length + W - 1) / W;
  i64 v = 0;
  // The pixels of three vectors stay in the L1 cache for all outputs.
  for (; v + 3 <= vectors; v += 3)
    product_column<T, 3>(outputs, runs, w, base + v * W, offset, out + v * W, ld);
  if (vectors - v == 2) product_column<T, 2>(outputs, runs, w, base + v * W, offset, out + v * W, ld);
  if (vectors - v == 1) product_column<T, 1>(outputs, runs, w, base + v * W, offset, out + v * W, ld);
}

template <class T>
void gemm_im2col_transposed(i64 outputs, i64 length, i64 runs, i64 images, const T* g, i64 ld, i64 g_image,
                            const T* base, i64 base_image, const i64* offset, T* dw) {
  constexpr i64 W = Vector<T>::kWidth;
  const i64 vectors = (length + W - 1) / W;
  i64 o = 0;
  for (; o + 4 <= outputs; o += 4)
    dots_rows<T, 4>(vectors, runs, images, g + o * ld, ld, g_image, base, base_image, offset, dw + o * runs);
  for (; o < outputs; ++o)
    dots_rows<T, 1>(vectors, runs, images, g + o * ld, ld, g_image, base, base_image, offset, dw + o * runs);
}

namespace {

template <class T, int L>
struct Lanes {
  typedef T type __attribute__((vector_size(L * sizeof(T))));
  static type load(const T* p) {
    type v;
    __builtin_memcpy(&v, p, sizeof v);
    return v;
  }
  static void store(T* p, type v) { __builtin_memcpy(p, &v, sizeof v); }
};

// x where the gate is above 0 or NaN, else 0.
template <bool kGated, class V>
inline V gated(V x, V gate) {
  return kGated ? (gate <= 0 ? V{} : x) : x;
}
template <bool kGated, class T>
inline T gated_one(T x, const T* gate) {
  return kGated && *gate <= 0 ? T(0) : x;
}

// L results from 2 L pixels.
template <class T, int L, bool kGated>
inline void avg_lanes(const T* a, const T* b, const T* ga, const T* gb, T* y) {
  using V = Lanes<T, L>;
  typename V::type s[2];
  for (int h = 0; h < 2; ++h) {
    const auto at = [h](const T* p) { return p ? V::load(p + h * L) : typename V::type{}; };
    s[h] = gated<kGated>(at(a), at(ga)) + gated<kGated>(at(b), at(gb));
  }
  typename V::type even, odd;
  if constexpr (L == 8) {
    even = __builtin_shufflevector(s[0], s[1], 0, 2, 4, 6, 8, 10, 12, 14);
    odd = __builtin_shufflevector(s[0], s[1], 1, 3, 5, 7, 9, 11, 13, 15);
  } else {
    even = __builtin_shufflevector(s[0], s[1], 0, 2, 4, 6);
    odd = __builtin_shufflevector(s[0], s[1], 1, 3, 5, 7);
  }
  V::store(y, T(0.25) * (even + odd));
}

template <class T, int L, bool kGated>
inline void spread_lanes(const T* y, const T* ga, const T* gb, T* a, T* b) {
  using V = Lanes<T, L>;
  const auto v = T(0.25) * V::load(y);
  typename V::type twice[2];
  if constexpr (L == 8) {
    twice[0] = __builtin_shufflevector(v, v, 0, 0, 1, 1, 2, 2, 3, 3);
    twice[1] = __builtin_shufflevector(v, v, 4, 4, 5, 5, 6, 6, 7, 7);
  } else {
    twice[0] = __builtin_shufflevector(v, v, 0, 0, 1, 1);
    twice[1] = __builtin_shufflevector(v, v, 2, 2, 3, 3);
  }
  for (int h = 0; h < 2; ++h) {
    const auto at = [h](const T* p) { return p ? V::load(p + h * L) : typename V::type{}; };
    V::store(a + h * L, gated<kGated>(twice[h], at(ga)));
    V::store(b + h * L, gated<kGated>(twice[h], at(gb)));
  }
}

// Calls f.template run<L>(j) on lanes [j, j + L) that cover [0, n); the last lanes may be processed twice.
template <class F>
inline void for_lanes(i64 n, const F& f) {
  const auto cover = [&](auto lanes) {
    constexpr int L = decltype(lanes)::value;
    for (i64 j = 0; j + L <= n; j += L) f.template run<L>(j);
    if (n % L) f.template run<L>(n - L);
  };
  if (n >= 8) return cover(std::integral_constant<int, 8>{});
  if (n >= 4) return cover(std::integral_constant<int, 4>{});
  for (i64 j = 0; j < n; ++j) f.one(j);
}

template <class T, bool kGated>
struct Avg {
  const T *a, *b, *ga, *gb;
  T* y;
  template <int L>
  void run(i64 j) const {
    avg_lanes<T, L, kGated>(a + 2 * j, b + 2 * j, kGated ? ga + 2 * j : nullptr,
                            kGated ? gb + 2 * j : nullptr, y + j);
  }
  void one(i64 j) const {
    T s = 0;
    for (i64 k = 2 * j; k < 2 * j + 2; ++k)
      s += gated_one<kGated>(a[k], ga + k) + gated_one<kGated>(b[k], gb + k);
    y[j] = T(0.25) * s;
  }
};

template <class T, bool kGated>
struct Spread {
  const T *y, *ga, *gb;
  T *a, *b;
  template <int L>
  void run(i64 j) const {
    spread_lanes<T, L, kGated>(y + j, kGated ? ga + 2 * j : nullptr, kGated ? gb + 2 * j : nullptr, a + 2 * j,
                               b + 2 * j);
  }
  void one(i64 j) const {
    for (i64 k = 2 * j; k < 2 * j + 2; ++k) {
      a[k] = gated_one<kGated>(T(0.25) * y[j], ga + k);
      b[k] = gated_one<kGated>(T(0.25) * y[j], gb + k);
    }
  }
};

}  // namespace

template <class T>
void avg_pairs(const T* a, const T* b, const T* gate_a, const T* gate_b, T* y, i64 n) {
  if (gate_a)
    for_lanes(n, Avg<T, true>{a, b, gate_a, gate_b, y});
  else
    for_lanes(n, Avg<T, false>{a, b, nullptr, nullptr, y});
}

template <class T>
void spread_pairs(const T* y, const T* gate_a, const T* gate_b, T* a, T* b, i64 n) {
  if (gate_a)
    for_lanes(n, Spread<T, true>{y, gate_a, gate_b, a, b});
  else
    for_lanes(n, Spread<T, false>{y, nullptr, nullptr, a, b});
}

#define INSTANTIATE(T)                                                                                    \
  template void gemm_im2col(i64, i64, i64, const T*, const T*, const i64*, T*, i64);                      \
  template void gemm_im2col_transposed(i64, i64, i64, i64, const T*, i64, i64, const T*, i64, const i64*, \
                                       T*);                                                               \
  template void avg_pairs(const T*, const T*, const T*, const T*, T*, i64);                               \
  template void spread_pairs(const T*, const T*, const T*, T*, T*, i64);
INSTANTIATE(float)
INSTANTIATE(double)
#undef INSTANTIATE

}  // namespace redco::kernels::REDCO_ISA
