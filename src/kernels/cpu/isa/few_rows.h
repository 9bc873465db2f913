// What products of at most 8 rows with a large matrix have in common, whatever type the matrix has.
#pragma once

#include <utility>

#include "kernels/cpu/isa/registers.h"

namespace redco::kernels::REDCO_ISA {

// Calls f<m>(), for m in [1, 8].
template <class F>
inline void with_rows(i64 m, const F& f) {
  switch (m) {
    case 1:
      return f.template operator()<1>();
    case 2:
      return f.template operator()<2>();
    case 3:
      return f.template operator()<3>();
    case 4:
      return f.template operator()<4>();
    case 5:
      return f.template operator()<5>();
    case 6:
      return f.template operator()<6>();
    case 7:
      return f.template operator()<7>();
    case 8:
      return f.template operator()<8>();
    default:
      return;
  }
}

// Lane i of two vectors of rows side by side, `kRows` in each, of which each row takes W / kRows lanes: the
// first (kUpper: second) halves of all rows. So first + second has 2 kRows rows of half the lanes.
template <int W, int kRows, bool kUpper>
constexpr int half_lane(int i) {
  const int lanes = W / kRows, half = lanes / 2, row = i / half;
  return (row < kRows ? 0 : W) + row % kRows * lanes + i % half + (kUpper ? half : 0);
}
template <int kRows, class V, int... I>
REDCO_INLINE V folded(const V& a, const V& b, std::integer_sequence<int, I...>) {
  constexpr int W = sizeof...(I);
  return __builtin_shufflevector(a, b, half_lane<W, kRows, false>(I)...) +
         __builtin_shufflevector(a, b, half_lane<W, kRows, true>(I)...);
}
template <int kRows, int W, int N, class V>
REDCO_INLINE V folded(const V* x) {
  constexpr auto kLanes = std::make_integer_sequence<int, W>();
  if constexpr (N == 1) {
    return x[0];
  } else {
    const V low = folded<kRows / 2, W, N / 2>(x), high = folded<kRows / 2, W, N / 2>(x + N / 2);
    return folded<kRows / 2>(low, high, kLanes);
  }
}
// Sums of the lanes of each row in `x`, which holds kRows rows: in the first kRows lanes.
template <int kRows, int W, class V>
REDCO_INLINE V summed(const V& x) {
  if constexpr (kRows == W) {
    return x;
  } else {
    return summed<2 * kRows, W>(folded<kRows>(x, x, std::make_integer_sequence<int, W>()));
  }
}

// out[i]: the sum of the elements of x[i]. The order of the sum depends on the instruction set alone. N: a
// power of two.
template <class T, int N, class V>
REDCO_INLINE void sum_each(const V (&x)[N], T* out) {
  constexpr int W = kBytes / static_cast<int>(sizeof(T));
  if constexpr (N > W) {
    for (int i = 0; i < N; ++i) {
      const V sum = summed<1, W>(x[i]);
      out[i] = sum[0];
    }
  } else {
    const V sums = summed<N, W>(folded<N, W, N>(x));
    __builtin_memcpy(out, &sums, N * sizeof(T));
  }
}

// Rows of the matrix that are prefetched ahead of N rows of `bytes` each that are read together: the
// processor does not foresee the next rows, because they are too short.
inline i64 rows_ahead(int n, i64 bytes) {
  constexpr i64 kAhead = 8192;
  const i64 together = n * (bytes > 0 ? bytes : 1);
  return n * (together >= kAhead ? 1 : (kAhead + together - 1) / together);
}

}  // namespace redco::kernels::REDCO_ISA
