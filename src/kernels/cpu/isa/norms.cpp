// Layer norm and RMS norm, row by row: a row stays in L1 between its passes.
#include "kernels/cpu/isa/math.h"
#include "kernels/cpu/isa/ranges.h"

namespace redco::kernels::REDCO_ISA {

template <class T, class X, class Y>
void layer_norm(const X* x, const T* w, const T* b, T eps, Y* y, T* mean, T* rstd, i64 R, i64 C) {
  for (i64 r = 0; r < R; ++r, x += C, y += C) {
    T s = 0;
#pragma omp simd reduction(+ : s)
    for (i64 c = 0; c < C; ++c) s += get(x, c);
    const T m = C ? s / static_cast<T>(C) : T(0);
    T v = 0;
#pragma omp simd reduction(+ : v)
    for (i64 c = 0; c < C; ++c) v += (get(x, c) - m) * (get(x, c) - m);
    const T k = T(1) / sqrt_((C ? v / static_cast<T>(C) : T(0)) + eps);
    mean[r] = m;
    rstd[r] = k;
    if (w && b) {
#pragma omp simd
      for (i64 c = 0; c < C; ++c) put(y, c, (get(x, c) - m) * k * w[c] + b[c]);
    } else if (w) {
#pragma omp simd
      for (i64 c = 0; c < C; ++c) put(y, c, (get(x, c) - m) * k * w[c]);
    } else if (b) {
#pragma omp simd
      for (i64 c = 0; c < C; ++c) put(y, c, (get(x, c) - m) * k + b[c]);
    } else {
#pragma omp simd
      for (i64 c = 0; c < C; ++c) put(y, c, (get(x, c) - m) * k);
    }
  }
}

namespace {

// One row. dw and db are updated before dx is written, so dx may be g or x.
template <bool kWeight, bool kDw, bool kDb, class T, class X, class G>
inline void layer_norm_row(const X* x, const T* w, T m, T k, const G* g, X* dx, T* dw, T* db, i64 C) {
  T s1 = 0, s2 = 0;
#pragma omp simd reduction(+ : s1, s2)
  for (i64 c = 0; c < C; ++c) {
    const T h = (get(x, c) - m) * k;
    const T gw = kWeight ? get(g, c) * w[c] : get(g, c);
    s1 += gw;
    s2 += gw * h;
    if constexpr (kDw) dw[c] += get(g, c) * h;
    if constexpr (kDb) db[c] += get(g, c);
  }
  s1 /= static_cast<T>(C);
  s2 /= static_cast<T>(C);
#pragma omp simd
  for (i64 c = 0; c < C; ++c) {
    const T h = (get(x, c) - m) * k;
    const T gw = kWeight ? get(g, c) * w[c] : get(g, c);
    put(dx, c, (gw - s1 - h * s2) * k);
  }
}

template <bool kWeight, bool kDw, class T, class X, class G>
inline void rms_norm_row(const X* x, const T* w, T k, const G* g, X* dx, T* dw, i64 C) {
  // A separate loop, so that the order of the sum doesn't depend on kDw.
  T s = 0;
#pragma omp simd reduction(+ : s)
  for (i64 c = 0; c < C; ++c) {
    const T h = get(x, c) * k;
    const T gw = kWeight ? get(g, c) * w[c] : get(g, c);
    s += gw * h;
  }
  if constexpr (kDw) {
#pragma omp simd
    for (i64 c = 0; c < C; ++c) dw[c] += get(g, c) * (get(x, c) * k);
  }
  s /= static_cast<T>(C);
#pragma omp simd
  for (i64 c = 0; c < C; ++c) {
    const T gw = kWeight ? get(g, c) * w[c] : get(g, c);
    put(dx, c, (gw - get(x, c) * k * s) * k);
  }
}

}  // namespace

template <class T, class X, class G>
void layer_norm_backward(const X* x, const T* w, const T* mean, const T* rstd, const G* g, X* dx, T* dw,
                         T* db, i64 R, i64 C) {
  for (i64 r = 0; r < R; ++r, x += C, g += C, dx += C) {
    const T m = mean[r], k = rstd[r];
    if (w && dw && db)
      layer_norm_row<true, true, true>(x, w, m, k, g, dx, dw, db, C);
    else if (w && dw)
      layer_norm_row<true, true, false>(x, w, m, k, g, dx, dw, db, C);
    else if (w && db)
      layer_norm_row<true, false, true>(x, w, m, k, g, dx, dw, db, C);
    else if (w)
      layer_norm_row<true, false, false>(x, w, m, k, g, dx, dw, db, C);
    else if (dw && db)
      layer_norm_row<false, true, true>(x, w, m, k, g, dx, dw, db, C);
    else if (dw)
      layer_norm_row<false, true, false>(x, w, m, k, g, dx, dw, db, C);
    else if (db)
      layer_norm_row<false, false, true>(x, w, m, k, g, dx, dw, db, C);
    else
      layer_norm_row<false, false, false>(x, w, m, k, g, dx, dw, db, C);
  }
}

template <class T, class X, class Y>
void rms_norm(const X* x, const T* w, T eps, Y* y, T* rstd, i64 R, i64 C) {
  for (i64 r = 0; r < R; ++r, x += C, y += C) {
    T s = 0;
#pragma omp simd reduction(+ : s)
    for (i64 c = 0; c < C; ++c) s += get(x, c) * get(x, c);
    const T k = T(1) / sqrt_((C ? s / static_cast<T>(C) : T(0)) + eps);
    rstd[r] = k;
    if (w) {
#pragma omp simd
      for (i64 c = 0; c < C; ++c) put(y, c, get(x, c) * k * w[c]);
    } else {
#pragma omp simd
      for (i64 c = 0; c < C; ++c) put(y, c, get(x, c) * k);
    }
  }
}

template <class T, class X, class G>
void rms_norm_backward(const X* x, const T* w, const T* rstd, const G* g, X* dx, T* dw, i64 R, i64 C) {
  for (i64 r = 0; r < R; ++r, x += C, g += C, dx += C) {
    if (w && dw)
      rms_norm_row<true, true>(x, w, rstd[r], g, dx, dw, C);
    else if (w)
      rms_norm_row<true, false>(x, w, rstd[r], g, dx, dw, C);
    else if (dw)
      rms_norm_row<false, true>(x, w, rstd[r], g, dx, dw, C);
    else
      rms_norm_row<false, false>(x, w, rstd[r], g, dx, dw, C);
  }
}

// The types of x and of y or g.
#define INSTANTIATE(T, X, Y)                                                                                 \
  template void layer_norm(const X*, const T*, const T*, T, Y*, T*, T*, i64, i64);                           \
  template void layer_norm_backward(const X*, const T*, const T*, const T*, const Y*, X*, T*, T*, i64, i64); \
  template void rms_norm(const X*, const T*, T, Y*, T*, i64, i64);                                           \
  template void rms_norm_backward(const X*, const T*, const T*, const Y*, X*, T*, i64, i64);
INSTANTIATE(double, double, double)
INSTANTIATE(float, float, float)
INSTANTIATE(float, float, bf16)
INSTANTIATE(float, bf16, float)
INSTANTIATE(float, bf16, bf16)
#undef INSTANTIATE

}  // namespace redco::kernels::REDCO_ISA
