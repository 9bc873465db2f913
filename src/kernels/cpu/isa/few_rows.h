// What products of at most 8 rows with a large matrix have in common, whatever type the matrix has.
#pragma once

#include "kernels/cpu/isa/math.h"

namespace redco::kernels::REDCO_ISA {

// Bytes of a vector.
#if defined(__AVX512F__)
constexpr int kBytes = 64, kRegisters = 32;
#elif defined(__AVX2__)
constexpr int kBytes = 32, kRegisters = 16;
#else
constexpr int kBytes = 16, kRegisters = 16;
#endif

// Rows of the matrix streamed together for m rows of the other operand: enough loads in flight for few rows,
// with all accumulators in registers.
constexpr int streamed_rows(int m) { return m <= 2 ? 4 : m <= 4 ? 2 : kRegisters == 32 ? 2 : 1; }

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

// The sum of a vector's elements by halves, which takes no longer than reading a short row.
template <class T, class V>
REDCO_INLINE T sum_by_halves(const V& v) {
  constexpr int W = kBytes / static_cast<int>(sizeof(T));
  T lanes[W];
  __builtin_memcpy(lanes, &v, sizeof lanes);
#pragma GCC unroll 4
  for (int half = W / 2; half > 0; half /= 2)
    for (int w = 0; w < half; ++w) lanes[w] += lanes[w + half];
  return lanes[0];
}

}  // namespace redco::kernels::REDCO_ISA
