// The arithmetic of reductions: element by element, starting with rank 0, in the element's type.
#pragma once

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "base/types.h"

namespace redco {

struct Add {
  template <class T>
  T operator()(T a, T b) const {
    if constexpr (std::is_integral_v<T>)
      return static_cast<T>(static_cast<std::make_unsigned_t<T>>(a) +
                            static_cast<std::make_unsigned_t<T>>(b));
    else
      return a + b;
  }
};

// NaN wins, so that every rank gets it.
struct Max {
  template <class T>
  T operator()(T a, T b) const {
    return (b > a || b != b) ? b : a;
  }
};

// out[n] = op(... op(op(parts[0], parts[1]), parts[2]) ...). `out` may be one of the parts. Blocks of 1024
// elements stay in the L1 cache while the parts of all ranks are added.
template <class T, class Op>
void combine(const T* const* parts, int p, T* out, i64 n, Op op) {
  constexpr i64 kBlock = 1024, kUnroll = 16;  // a constant inner loop count lets -O2 vectorize
  alignas(64) T acc[kBlock];
  i64 at = 0;
  for (; at < n; at += kBlock) {
    const i64 m = std::min(kBlock, n - at), whole = m / kUnroll * kUnroll;
    std::memcpy(acc, parts[0] + at, static_cast<std::size_t>(m) * sizeof(T));
    for (int r = 1; r < p; r++) {
      const T* x = parts[r] + at;
      for (i64 i = 0; i < whole; i += kUnroll)
        for (i64 j = 0; j < kUnroll; j++) acc[i + j] = op(acc[i + j], x[i + j]);
      for (i64 i = whole; i < m; i++) acc[i] = op(acc[i], x[i]);
    }
    std::memcpy(out + at, acc, static_cast<std::size_t>(m) * sizeof(T));
  }
}

}  // namespace redco
