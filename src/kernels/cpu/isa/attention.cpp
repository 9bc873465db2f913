// Row operations of attention between its products: scale, bias, masks, online softmax, dropout, and their
// backward.
#include "kernels/cpu/isa/philox.h"
#include "kernels/cpu/isa/ranges.h"

namespace redco::kernels::REDCO_ISA {
namespace {

struct Columns {
  i64 begin, end;  // the columns of the block that causality and the window allow for a row
};

template <class T>
inline i64 query_of(const ScoreBlock<T>& b, i64 row) {
  return b.q0 + row;
}

template <class T>
inline Columns columns_of(const ScoreBlock<T>& b, i64 row) {
  i64 begin = 0, end = b.cols;
  const i64 diagonal = query_of(b, row) + b.shift - b.k0;  // the last column that causality allows
  if (b.causal && diagonal + 1 < end) end = diagonal + 1;
  if (b.ahead >= 0 && diagonal + b.ahead + 1 < end) end = diagonal + b.ahead + 1;
  if (b.window > 0 && diagonal - b.window + 1 > begin) begin = diagonal - b.window + 1;
  if (end < 0) end = 0;
  if (begin > end) begin = end;
  return {begin, end};
}

// s = s * scale + bias, or its soft cap, and -inf where a mask excludes the key, over [begin, end) of one
// row. slope: null, or d s / d (s * scale) of the soft cap.
template <class T>
inline void score_row(const ScoreBlock<T>& b, i64 row, T* s, Columns v, T* slope = nullptr) {
  const T kHidden = -static_cast<T>(__builtin_inf());
  const T scale = b.scale;
  if (b.softcap > 0) {
    const T cap = b.softcap, by = scale / cap;
#pragma omp simd
    for (i64 c = v.begin; c < v.end; ++c) s[c] = tanh_(s[c] * by);
    if (slope) {
#pragma omp simd
      for (i64 c = v.begin; c < v.end; ++c) slope[c] = 1 - s[c] * s[c];
    }
#pragma omp simd
    for (i64 c = v.begin; c < v.end; ++c) s[c] *= cap;
  } else if (b.bias) {
    const T* bias = b.bias + query_of(b, row) * b.bias_ld + b.k0;
#pragma omp simd
    for (i64 c = v.begin; c < v.end; ++c) s[c] = s[c] * scale + bias[c];
  } else {
#pragma omp simd
    for (i64 c = v.begin; c < v.end; ++c) s[c] *= scale;
  }
  if (b.slope != 0) {
    const i64 diagonal = query_of(b, row) + b.shift - b.k0;
#pragma omp simd
    for (i64 c = v.begin; c < v.end; ++c) s[c] += b.slope * static_cast<T>(c - diagonal);
  }
  if (b.key_mask) {
    const i32* mask = b.key_mask + b.k0;
#pragma omp simd
    for (i64 c = v.begin; c < v.end; ++c) s[c] = mask[c] != 0 ? s[c] : kHidden;
  }
  if (b.q_segment) {
    const i32 mine = b.q_segment[query_of(b, row)];
    const i32* segment = b.k_segment + b.k0;
#pragma omp simd
    for (i64 c = v.begin; c < v.end; ++c) s[c] = segment[c] == mine ? s[c] : kHidden;
  }
}

template <class T>
inline void clear_outside(T* s, i64 cols, Columns v) {
  for (i64 c = 0; c < v.begin; ++c) s[c] = 0;
  for (i64 c = v.end; c < cols; ++c) s[c] = 0;
}

}  // namespace

template <class T>
void attend_block(const ScoreBlock<T>& b, T* m, T* l, T* correction) {
  const T kNone = -static_cast<T>(__builtin_inf());
  for (i64 r = 0; r < b.rows; ++r) {
    T* s = b.s + r * b.ld;
    const Columns v = columns_of(b, r);
    score_row(b, r, s, v);
    const T top = max_of(m[r], s + v.begin, v.end - v.begin);
    const T shift = top == kNone ? T(0) : top;
    T sum = 0;
#pragma omp simd reduction(+ : sum)
    for (i64 c = v.begin; c < v.end; ++c) {
      const T e = exp_(s[c] - shift);
      s[c] = e;
      sum += e;
    }
    clear_outside(s, b.cols, v);
    const T by = top == kNone ? T(1) : exp_(m[r] - top);
    correction[r] = by;
    l[r] = l[r] * by + sum;
    m[r] = top;
    if (b.drop_below)
      dropout(s + v.begin, s + v.begin, b.drop_below, b.keep_scale, b.key, b.c0, b.c1,
              static_cast<u32>(query_of(b, r)), static_cast<u32>(b.k0 + v.begin), v.end - v.begin);
  }
}

namespace {

template <class T>
inline void apply_slope(T* d, const T* slope, Columns v) {
#pragma omp simd
  for (i64 c = v.begin; c < v.end; ++c) d[c] *= slope[c];
}

}  // namespace

template <class T>
void attend_block_backward(const ScoreBlock<T>& b, const T* lse, const T* delta, T* dp) {
  const T kNone = -static_cast<T>(__builtin_inf());
  const bool capped = b.softcap > 0;
  T slope[kMaxScoreColumns];
  for (i64 r = 0; r < b.rows; ++r) {
    T* s = b.s + r * b.ld;
    T* d = dp + r * b.ld;
    Columns v = columns_of(b, r);
    if (lse[r] == kNone) v.end = v.begin;
    clear_outside(s, b.cols, v);
    clear_outside(d, b.cols, v);
    score_row(b, r, s, v, capped ? slope : nullptr);
    const T shift = lse[r], mean = delta[r];
    if (b.whole_rows) {
      // The block has all keys of the row, so the row of dS can be made to sum to zero as exactly as its
      // elements allow, with the mean of dP in double. That sum is the true gradient of a key bias, which is
      // zero; AdamW would amplify its rounding noise to full steps.
      const bool drops = b.drop_below != 0;
      u32 words[kMaxScoreColumns];
      if (drops)
        philox_fill<false>(b.key, b.c0, b.c1, static_cast<u32>(query_of(b, r)), static_cast<u32>(b.k0), words,
                           nullptr, v.end);
      double sum = 0, weighted = 0;
#pragma omp simd reduction(+ : sum, weighted)
      for (i64 c = v.begin; c < v.end; ++c) {
        const T p = exp_(s[c] - shift);
        if (drops) d[c] *= (words[c] >> 8) >= b.drop_below ? b.keep_scale : T(0);
        s[c] = p;
        sum += static_cast<double>(p);
        weighted += static_cast<double>(p) * static_cast<double>(d[c]);
      }
      const double exact = sum > 0 ? weighted / sum : 0;
#pragma omp simd
      for (i64 c = v.begin; c < v.end; ++c) {
        const double p = static_cast<double>(s[c]);
        d[c] = static_cast<T>(p * (static_cast<double>(d[c]) - exact));
        if (drops) s[c] *= (words[c] >> 8) >= b.drop_below ? b.keep_scale : T(0);
      }
      if (capped) apply_slope(d, slope, v);
      continue;
    }
    if (b.drop_below) {
      u32 words[kMaxScoreColumns];
      philox_fill<false>(b.key, b.c0, b.c1, static_cast<u32>(query_of(b, r)), static_cast<u32>(b.k0), words,
                         nullptr, v.end);
#pragma omp simd
      for (i64 c = v.begin; c < v.end; ++c) {
        const T keep = (words[c] >> 8) >= b.drop_below ? b.keep_scale : T(0);
        const T p = exp_(s[c] - shift);
        s[c] = p * keep;
        d[c] = p * (d[c] * keep - mean);
      }
    } else {
#pragma omp simd
      for (i64 c = v.begin; c < v.end; ++c) {
        const T p = exp_(s[c] - shift);
        s[c] = p;
        d[c] = p * (d[c] - mean);
      }
    }
    if (capped) apply_slope(d, slope, v);
  }
}

template <class T>
void scale_rows(T* out, i64 ld, i64 rows, i64 cols, const T* by) {
  for (i64 r = 0; r < rows; ++r, out += ld) {
    const T f = by[r];
    if (f == T(1)) continue;
#pragma omp simd
    for (i64 c = 0; c < cols; ++c) out[c] *= f;
  }
}

#define INSTANTIATE(T)                                                               \
  template void attend_block(const ScoreBlock<T>&, T*, T*, T*);                      \
  template void attend_block_backward(const ScoreBlock<T>&, const T*, const T*, T*); \
  template void scale_rows(T*, i64, i64, i64, const T*);
INSTANTIATE(float)
INSTANTIATE(double)
#undef INSTANTIATE

}  // namespace redco::kernels::REDCO_ISA
