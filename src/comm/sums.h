// The arithmetic of reductions: element by element, in the element's type, along one fixed tree over ranks.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
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

// What `ranks` ranks that are a subtree contribute to a sum: the elements of one rank, or their sum.
struct Term {
  const std::byte* data;
  int ranks;
};

// The result of the terms from `term` on, together p ranks, at the elements [at, at + m): in `out`, or in the
// term if there is one. `term` moves behind them.
template <class T, class Op>
const T* combine_block(const Term*& term, int p, i64 at, i64 m, T* out, T* scratch, Op op) {
  const auto next = [&] { return reinterpret_cast<const T*>((term++)->data) + at; };
  if (term->ranks == p) return next();
  if (p == 4 && term[0].ranks == 1 && term[1].ranks == 1 && term[2].ranks == 1) {  // in one pass
    const T *a = next(), *b = next(), *c = next(), *d = next();
    fill(out, m, [=](i64 i) { return op(op(a[i], b[i]), op(c[i], d[i])); });
    return out;
  }
  const int h = left_subtree(p);
  T *const left = scratch, *const right = scratch + kTreeBlock;
  const T* const a = combine_block(term, h, at, m, left, right, op);
  const T* const b = combine_block(term, p - h, at, m, right, right + kTreeBlock, op);
  fill(out, m, [=](i64 i) { return op(a[i], b[i]); });
  return out;
}

// out[begin, end) = the combination of two or more terms of p ranks in all, along the tree over p ranks. Each
// term is a subtree of it. `out` may be one of the terms.
template <class T, class Op>
void combine(const Term* terms, int p, T* out, i64 begin, i64 end, Op op) {
  alignas(64) T scratch[kScratchBlocks * kTreeBlock];
  for (i64 at = begin; at < end; at += kTreeBlock) {
    const Term* next = terms;
    combine_block(next, p, at, std::min(kTreeBlock, end - at), out + at, scratch, op);
  }
}

}  // namespace redco
