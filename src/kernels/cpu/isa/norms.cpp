// Layer norm and RMS norm, row by row: a row stays in L1 between its passes.
#include "kernels/cpu/isa/math.h"
#include "kernels/cpu/isa/ranges.h"

namespace redco::kernels::REDCO_ISA {

template <class T>
void layer_norm(const T* x, const T* w, const T* b, T eps, T* y, T* mean, T* rstd, i64 R, i64 C) {
  for (i64 r = 0; r < R; ++r, x += C, y += C) {
    T s = 0;
#pragma omp simd reduction(+ : s)
    for (i64 c = 0; c < C; ++c) s += x[c];
    const T m = C ? s / static_cast<T>(C) : T(0);
    T v = 0;
#pragma omp simd reduction(+ : v)
    for (i64 c = 0; c < C; ++c) v += (x[c] - m) * (x[c] - m);
    const T k = T(1) / sqrt_((C ? v / static_cast<T>(C) : T(0)) + eps);
    mean[r] = m;
    rstd[r] = k;
    if (w && b) {
#pragma omp simd
      for (i64 c = 0; c < C; ++c) y[c] = (x[c] - m) * k * w[c] + b[c];
    } else if (w) {
#pragma omp simd
      for (i64 c = 0; c < C; ++c) y[c] = (x[c] - m) * k * w[c];
    } else if (b) {
#pragma omp simd
      for (i64 c = 0; c < C; ++c) y[c] = (x[c] - m) * k + b[c];
    } else {
#pragma omp simd
      for (i64 c = 0; c < C; ++c) y[c] = (x[c] - m) * k;
    }
  }
}

namespace {

// One row. dw and db are updated before dx is written, so dx may be g or x.
template <class T, bool kWeight, bool kDw, bool kDb>
inline void layer_norm_row(const T* x, const T* w, T m, T k, const T* g, T* dx, T* dw, T* db, i64 C) {
  T s1 = 0, s2 = 0;
#pragma omp simd reduction(+ : s1, s2)
  for (i64 c = 0; c < C; ++c) {
    const T h = (x[c] - m) * k;
    const T gw = kWeight ? g[c] * w[c] : g[c];
    s1 += gw;
    s2 += gw * h;
    if constexpr (kDw) dw[c] += g[c] * h;
    if constexpr (kDb) db[c] += g[c];
  }
  s1 /= static_cast<T>(C);
  s2 /= static_cast<T>(C);
#pragma omp simd
  for (i64 c = 0; c < C; ++c) {
    const T h = (x[c] - m) * k;
    const T gw = kWeight ? g[c] * w[c] : g[c];
    dx[c] = (gw - s1 - h * s2) * k;
  }
}

template <class T, bool kWeight, bool kDw>
inline void rms_norm_row(const T* x, const T* w, T k, const T* g, T* dx, T* dw, i64 C) {
  T s = 0;
#pragma omp simd reduction(+ : s)
  for (i64 c = 0; c < C; ++c) {
    const T h = x[c] * k;
    const T gw = kWeight ? g[c] * w[c] : g[c];
    s += gw * h;
    if constexpr (kDw) dw[c] += g[c] * h;
  }
  s /= static_cast<T>(C);
#pragma omp simd
  for (i64 c = 0; c < C; ++c) {
    const T gw = kWeight ? g[c] * w[c] : g[c];
    dx[c] = (gw - x[c] * k * s) * k;
  }
}

}  // namespace

template <class T>
void layer_norm_backward(const T* x, const T* w, const T* mean, const T* rstd, const T* g, T* dx, T* dw,
                         T* db, i64 R, i64 C) {
  for (i64 r = 0; r < R; ++r, x += C, g += C, dx += C) {
    const T m = mean[r], k = rstd[r];
    if (w && dw && db)
      layer_norm_row<T, true, true, true>(x, w, m, k, g, dx, dw, db, C);
    else if (w && dw)
      layer_norm_row<T, true, true, false>(x, w, m, k, g, dx, dw, db, C);
    else if (w && db)
      layer_norm_row<T, true, false, true>(x, w, m, k, g, dx, dw, db, C);
    else if (w)
      layer_norm_row<T, true, false, false>(x, w, m, k, g, dx, dw, db, C);
    else if (dw && db)
      layer_norm_row<T, false, true, true>(x, w, m, k, g, dx, dw, db, C);
    else if (dw)
      layer_norm_row<T, false, true, false>(x, w, m, k, g, dx, dw, db, C);
    else if (db)
      layer_norm_row<T, false, false, true>(x, w, m, k, g, dx, dw, db, C);
    else
      layer_norm_row<T, false, false, false>(x, w, m, k, g, dx, dw, db, C);
  }
}

template <class T>
void rms_norm(const T* x, const T* w, T eps, T* y, T* rstd, i64 R, i64 C) {
  for (i64 r = 0; r < R; ++r, x += C, y += C) {
    T s = 0;
#pragma omp simd reduction(+ : s)
    for (i64 c = 0; c < C; ++c) s += x[c] * x[c];
    const T k = T(1) / sqrt_((C ? s / static_cast<T>(C) : T(0)) + eps);
    rstd[r] = k;
    if (w) {
#pragma omp simd
      for (i64 c = 0; c < C; ++c) y[c] = x[c] * k * w[c];
    } else {
#pragma omp simd
      for (i64 c = 0; c < C; ++c) y[c] = x[c] * k;
    }
  }
}

template <class T>
void rms_norm_backward(const T* x, const T* w, const T* rstd, const T* g, T* dx, T* dw, i64 R, i64 C) {
  for (i64 r = 0; r < R; ++r, x += C, g += C, dx += C) {
    if (w && dw)
      rms_norm_row<T, true, true>(x, w, rstd[r], g, dx, dw, C);
    else if (w)
      rms_norm_row<T, true, false>(x, w, rstd[r], g, dx, dw, C);
    else if (dw)
      rms_norm_row<T, false, true>(x, w, rstd[r], g, dx, dw, C);
    else
      rms_norm_row<T, false, false>(x, w, rstd[r], g, dx, dw, C);
  }
}

#define INSTANTIATE(T)                                                                                       \
  template void layer_norm(const T*, const T*, const T*, T, T*, T*, T*, i64, i64);                           \
  template void layer_norm_backward(const T*, const T*, const T*, const T*, const T*, T*, T*, T*, i64, i64); \
  template void rms_norm(const T*, const T*, T, T*, T*, i64, i64);                                           \
  template void rms_norm_backward(const T*, const T*, const T*, const T*, T*, T*, i64, i64);
INSTANTIATE(float)
INSTANTIATE(double)
#undef INSTANTIATE

}  // namespace redco::kernels::REDCO_ISA
