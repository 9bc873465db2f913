// Sums (in fp64) and maxima of a range, and sums of rows into an accumulator row.
#include "kernels/cpu/isa/math.h"
#include "kernels/cpu/isa/ranges.h"

namespace redco::kernels::REDCO_ISA {

template <class X>
double sum(const X* x, i64 n) {
  double s = 0;
#pragma omp simd reduction(+ : s)
  for (i64 i = 0; i < n; ++i) s += static_cast<double>(get(x, i));
  return s;
}

float largest_magnitude(const float* x, i64 n) {
  float m = 0;
  i32 bad = 0;
#pragma omp simd reduction(max : m) reduction(| : bad)
  for (i64 i = 0; i < n; ++i) {
    const float a = x[i] < 0 ? -x[i] : x[i];
    m = a > m ? a : m;
    bad |= a <= __FLT_MAX__ ? 0 : 1;
  }
  return bad ? static_cast<float>(__builtin_inf()) : m;
}

void split_squares(const float* x, i64 n, double shift, double* parts) {
  const double high = shift, middle = high * 0x1p-40, low = middle * 0x1p-40;
  double a = 0, b = 0, c = 0;
#pragma omp simd reduction(+ : a, b, c)
  for (i64 i = 0; i < n; ++i) {
    const double square = static_cast<double>(x[i]) * static_cast<double>(x[i]);  // exact
    const double p = (square + high) - high, left = square - p;
    const double q = (left + middle) - middle, last = left - q;
    a += p;
    b += q;
    c += (last + low) - low;
  }
  parts[0] = a;
  parts[1] = b;
  parts[2] = c;
}

template <class X>
wide_t<X> max(const X* x, i64 n) {
  using T = wide_t<X>;
  i32 nan = 0;
#pragma omp simd reduction(| : nan)
  for (i64 i = 0; i < n; ++i) nan |= get(x, i) != get(x, i) ? 1 : 0;
  return nan ? static_cast<T>(__builtin_nan("")) : max_of(-static_cast<T>(__builtin_inf()), x, n);
}

template <class X>
void row_sums(const X* x, i64 rows, i64 cols, wide_t<X>* y) {
  if (cols < kShort) {
    for (i64 r = 0; r < rows; ++r, x += cols) {
      double s = 0;
      for (i64 c = 0; c < cols; ++c) s += static_cast<double>(get(x, c));
      y[r] = static_cast<wide_t<X>>(s);
    }
    return;
  }
  for (i64 r = 0; r < rows; ++r) y[r] = static_cast<wide_t<X>>(sum(x + r * cols, cols));
}

template <class X>
void row_maxima(const X* x, i64 rows, i64 cols, wide_t<X>* y) {
  if (cols < kShort) {
    for (i64 r = 0; r < rows; ++r, x += cols) {
      wide_t<X> m = -static_cast<wide_t<X>>(__builtin_inf());
      for (i64 c = 0; c < cols; ++c) m = get(x, c) > m || get(x, c) != get(x, c) ? get(x, c) : m;
      y[r] = m;
    }
    return;
  }
  for (i64 r = 0; r < rows; ++r) y[r] = max(x + r * cols, cols);
}

template <class X>
void add_rows(const X* x, i64 stride, i64 rows, i64 cols, double* acc) {
  i64 r = 0;
  for (; r + 4 <= rows; r += 4, x += 4 * stride) {
#pragma omp simd
    for (i64 c = 0; c < cols; ++c) {
      const double lo = static_cast<double>(get(x, c)) + static_cast<double>(get(x, c + stride));
      const double hi =
          static_cast<double>(get(x, c + 2 * stride)) + static_cast<double>(get(x, c + 3 * stride));
      acc[c] += lo + hi;
    }
  }
  for (; r < rows; ++r, x += stride) {
#pragma omp simd
    for (i64 c = 0; c < cols; ++c) acc[c] += static_cast<double>(get(x, c));
  }
}

#define INSTANTIATE(X)                                      \
  template double sum(const X*, i64);                       \
  template void row_sums(const X*, i64, i64, wide_t<X>*);   \
  template wide_t<X> max(const X*, i64);                    \
  template void row_maxima(const X*, i64, i64, wide_t<X>*); \
  template void add_rows(const X*, i64, i64, i64, double*);
INSTANTIATE(float)
INSTANTIATE(double)
INSTANTIATE(bf16)
#undef INSTANTIATE

}  // namespace redco::kernels::REDCO_ISA
