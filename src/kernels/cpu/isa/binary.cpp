// Elementwise functions of two arguments over a two-dimensional tile, and scaled sums.
#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/isa/math.h"
#include "kernels/cpu/isa/ranges.h"

namespace redco::kernels::REDCO_ISA {
namespace {

template <class T, class F>
inline void tile(const T* a, i64 ar, i64 ac, const T* b, i64 br, i64 bc, T* out, i64 so, i64 rows, i64 cols,
                 F f) {
  for (i64 r = 0; r < rows; ++r, a += ar, b += br, out += so) {
    if (ac == 1 && bc == 1) {
#pragma omp simd
      for (i64 c = 0; c < cols; ++c) out[c] = f(a[c], b[c]);
    } else if (ac == 1 && bc == 0) {
      const T v = *b;
#pragma omp simd
      for (i64 c = 0; c < cols; ++c) out[c] = f(a[c], v);
    } else if (ac == 0 && bc == 1) {
      const T v = *a;
#pragma omp simd
      for (i64 c = 0; c < cols; ++c) out[c] = f(v, b[c]);
    } else {
      for (i64 c = 0; c < cols; ++c) out[c] = f(a[c * ac], b[c * bc]);
    }
  }
}

}  // namespace

template <class T>
void binary(int op, const T* a, i64 ar, i64 ac, const T* b, i64 br, i64 bc, T* out, i64 so, i64 rows,
            i64 cols) {
  const auto run = [&](auto f) { tile(a, ar, ac, b, br, bc, out, so, rows, cols, f); };
  switch (static_cast<Binary>(op)) {
    case Binary::add:
      return run([](T x, T y) { return x + y; });
    case Binary::sub:
      return run([](T x, T y) { return x - y; });
    case Binary::mul:
      return run([](T x, T y) { return x * y; });
    case Binary::div:
      return run([](T x, T y) { return x / y; });
    case Binary::max:
      return run([](T x, T y) { return x != x ? x : x > y ? x : y; });  // keeps NaN
    case Binary::min:
      return run([](T x, T y) { return x != x ? x : x < y ? x : y; });
    case Binary::eq:
      return run([](T x, T y) { return x == y ? T(1) : T(0); });
    case Binary::lt:
      return run([](T x, T y) { return x < y ? T(1) : T(0); });
    case Binary::le:
      return run([](T x, T y) { return x <= y ? T(1) : T(0); });
  }
}

template <class T>
void affine(const T* x, T* y, T mul, T add, i64 n) {
#pragma omp simd
  for (i64 i = 0; i < n; ++i) y[i] = mul * x[i] + add;
}

template <class T>
void axpy(T a, const T* x, T* y, i64 n) {
#pragma omp simd
  for (i64 i = 0; i < n; ++i) y[i] += a * x[i];
}

#define INSTANTIATE(T)                                                                  \
  template void binary(int, const T*, i64, i64, const T*, i64, i64, T*, i64, i64, i64); \
  template void affine(const T*, T*, T, T, i64);                                        \
  template void axpy(T, const T*, T*, i64);
INSTANTIATE(float)
INSTANTIATE(double)
#undef INSTANTIATE

}  // namespace redco::kernels::REDCO_ISA
