// Softmax and cross-entropy, row by row. A row whose maximum is -inf is shifted by 0, so that NaN is kept.
#include "kernels/cpu/isa/math.h"
#include "kernels/cpu/isa/ranges.h"

namespace redco::kernels::REDCO_ISA {
namespace {

constexpr i64 kTogether = 512;  // elements

template <class T>
inline T row_max(const T* x, i64 n) {  // NaN is ignored
  return max_of(-static_cast<T>(__builtin_inf()), x, n);
}

template <class T>
REDCO_INLINE T finite_shift(T m) {
  return m == -static_cast<T>(__builtin_inf()) ? T(0) : m;
}

// Rows shorter than a vector are done several at a time, so that the functions get whole vectors.
template <class T>
void log_softmax_of_short(const T* x, T* y, i64 R, i64 C) {
  T e[kTogether], sums[kTogether];
  for (i64 rows; R > 0; R -= rows, x += rows * C, y += rows * C) {
    rows = R * C > kTogether ? kTogether / C : R;
    for (i64 r = 0; r < rows; ++r) {
      T m = -static_cast<T>(__builtin_inf());
      for (i64 c = 0; c < C; ++c) m = x[r * C + c] > m ? x[r * C + c] : m;
      for (i64 c = 0; c < C; ++c) y[r * C + c] = x[r * C + c] - m;
    }
#pragma omp simd
    for (i64 i = 0; i < rows * C; ++i) e[i] = exp_(y[i]);
    for (i64 r = 0; r < rows; ++r) {
      sums[r] = 0;
      for (i64 c = 0; c < C; ++c) sums[r] += e[r * C + c];
    }
#pragma omp simd
    for (i64 r = 0; r < rows; ++r) sums[r] = log_(sums[r]);
    for (i64 r = 0; r < rows; ++r)
      for (i64 c = 0; c < C; ++c) y[r * C + c] -= sums[r];
  }
}

}  // namespace

template <class T>
void softmax(const T* x, T* y, i64 R, i64 C) {
  for (i64 r = 0; r < R; ++r, x += C, y += C) {
    const T m = finite_shift(row_max(x, C));
    T s = 0;
#pragma omp simd reduction(+ : s)
    for (i64 c = 0; c < C; ++c) {
      const T e = exp_(x[c] - m);
      y[c] = e;
      s += e;
    }
    const T k = s == 0 ? T(0) : T(1) / s;
#pragma omp simd
    for (i64 c = 0; c < C; ++c) y[c] *= k;
  }
}

template <class T>
void log_softmax(const T* x, T* y, i64 R, i64 C) {
  if (C < kShort) return log_softmax_of_short(x, y, R, C);
  for (i64 r = 0; r < R; ++r, x += C, y += C) {
    const T m = row_max(x, C);
    T s = 0;
#pragma omp simd reduction(+ : s)
    for (i64 c = 0; c < C; ++c) s += exp_(x[c] - m);
    const T l = log_(s);
#pragma omp simd
    for (i64 c = 0; c < C; ++c) y[c] = (x[c] - m) - l;
  }
}

template <class T>
void log_softmax_backward(const T* y, const T* g, T* dx, i64 R, i64 C) {
  if (C < kShort) {
    T e[kTogether];
    for (i64 rows; R > 0; R -= rows, y += rows * C, g += rows * C, dx += rows * C) {
      rows = R * C > kTogether ? kTogether / C : R;
#pragma omp simd
      for (i64 i = 0; i < rows * C; ++i) e[i] = exp_(y[i]);
      for (i64 r = 0; r < rows; ++r) {
        T s = 0;
        for (i64 c = 0; c < C; ++c) s += g[r * C + c];
        for (i64 c = 0; c < C; ++c) dx[r * C + c] = g[r * C + c] - e[r * C + c] * s;
      }
    }
    return;
  }
  for (i64 r = 0; r < R; ++r, y += C, g += C, dx += C) {
    const T s = static_cast<T>(sum(g, C));
#pragma omp simd
    for (i64 c = 0; c < C; ++c) dx[c] = g[c] - exp_(y[c]) * s;
  }
}

template <class X>
wide_t<X> sum_exp(const X* x, wide_t<X> max, i64 n) {
  using T = wide_t<X>;
  const T m = finite_shift(max);
  T s = 0;
#pragma omp simd reduction(+ : s)
  for (i64 i = 0; i < n; ++i) s += exp_(get(x, i) - m);
  return s;
}

template <class X>
void scaled_exp(const X* x, wide_t<X> lse, wide_t<X> g, X* dx, i64 n) {
  const wide_t<X> m = finite_shift(lse);
#pragma omp simd
  for (i64 i = 0; i < n; ++i) put(dx, i, exp_(get(x, i) - m) * g);
}

template <class T>
T dot(const T* a, const T* b, i64 n) {
  T s = 0;
#pragma omp simd reduction(+ : s)
  for (i64 i = 0; i < n; ++i) s += a[i] * b[i];
  return s;
}

template <class X>
void rope(const X* x, const wide_t<X>* c, const wide_t<X>* s, i64 rotary, bool interleaved, X* y, i64 H,
          i64 D) {
  using T = wide_t<X>;
  const i64 half = rotary / 2;
  for (i64 h = 0; h < H; ++h, x += D, y += D) {
    if (interleaved) {
#pragma omp simd
      for (i64 i = 0; i < half; ++i) {
        const T a = get(x, 2 * i), b = get(x, 2 * i + 1);
        put(y, 2 * i, a * c[i] - b * s[i]);
        put(y, 2 * i + 1, b * c[i] + a * s[i]);
      }
    } else {
#pragma omp simd
      for (i64 i = 0; i < half; ++i) {
        const T a = get(x, i), b = get(x, i + half);
        put(y, i, a * c[i] - b * s[i]);
        put(y, i + half, b * c[i] + a * s[i]);
      }
    }
    if (y != x) {
#pragma omp simd
      for (i64 i = rotary; i < D; ++i) y[i] = x[i];
    }
  }
}

#define INSTANTIATE(X)                                               \
  template wide_t<X> sum_exp(const X*, wide_t<X>, i64);              \
  template void scaled_exp(const X*, wide_t<X>, wide_t<X>, X*, i64); \
  template void rope(const X*, const wide_t<X>*, const wide_t<X>*, i64, bool, X*, i64, i64);
INSTANTIATE(float)
INSTANTIATE(double)
INSTANTIATE(bf16)
#undef INSTANTIATE
#define INSTANTIATE(T)                                                  \
  template void softmax(const T*, T*, i64, i64);                        \
  template void log_softmax(const T*, T*, i64, i64);                    \
  template void log_softmax_backward(const T*, const T*, T*, i64, i64); \
  template T dot(const T*, const T*, i64);
INSTANTIATE(float)
INSTANTIATE(double)
#undef INSTANTIATE

}  // namespace redco::kernels::REDCO_ISA
