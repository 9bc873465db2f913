// The arithmetic of reductions: element by element, in the element's type, along one fixed tree over ranks.
#pragma once

#include <algorithm>
#include <bit>
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

// The left subtree of a tree over n > 1 ranks: the largest power of two below n. So 5 ranks are
// ((0 + 1) + (2 + 3)) + 4, and aligned powers of two of ranks are subtrees in each tree.
constexpr int left_subtree(int n) { return static_cast<int>(std::bit_floor(static_cast<unsigned>(n - 1))); }

// Elements that are combined together: the partial results of a block stay in the L1 cache.
constexpr i64 kTreeBlock = 512;
constexpr i64 kScratchBlocks = 32;  // two for each level of the tree: enough for 65536 ranks

// out[i] = f(i) for i in [0, m). What f reads may overlap `out` at i only.
template <class T, class F>
void fill(T* out, i64 m, const F& f) {
  constexpr i64 kUnroll = 16;  // a constant inner loop count lets -O2 vectorize
  const i64 whole = m / kUnroll * kUnroll;
  for (i64 i = 0; i < whole; i += kUnroll)
#pragma GCC ivdep
    for (i64 j = i; j < i + kUnroll; ++j) out[j] = f(j);
  for (i64 i = whole; i < m; ++i) out[i] = f(i);
}

// The result of parts[0..p) at the elements [at, at + m): in `out`, or in parts[0] if p is 1.
template <class T, class Op>
const T* combine_block(const T* const* parts, int p, i64 at, i64 m, T* out, T* scratch, Op op) {
  if (p == 1) return parts[0] + at;
  if (p == 4) {  // in one pass
    const T *a = parts[0] + at, *b = parts[1] + at, *c = parts[2] + at, *d = parts[3] + at;
    fill(out, m, [=](i64 i) { return op(op(a[i], b[i]), op(c[i], d[i])); });
    return out;
  }
  const int h = left_subtree(p);
  T *const left = scratch, *const right = scratch + kTreeBlock;
  const T* const a = combine_block(parts, h, at, m, left, right, op);
  const T* const b = combine_block(parts + h, p - h, at, m, right, right + kTreeBlock, op);
  fill(out, m, [=](i64 i) { return op(a[i], b[i]); });
  return out;
}

// out[begin, end) = the combination of parts[0..p) along the tree over p > 1 ranks. `out` may be one of the
// parts.
template <class T, class Op>
void combine(const T* const* parts, int p, T* out, i64 begin, i64 end, Op op) {
  alignas(64) T scratch[kScratchBlocks * kTreeBlock];
  for (i64 at = begin; at < end; at += kTreeBlock)
    combine_block(parts, p, at, std::min(kTreeBlock, end - at), out + at, scratch, op);
}

}  // namespace redco
