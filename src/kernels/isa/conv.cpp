// Products of a matrix with shifted runs of an image: accumulators stay in registers.
#include "kernels/isa/conv.h"

namespace redco::kernels::REDCO_ISA {
namespace {

#if defined(__AVX512F__)
constexpr int kBytes = 64;
constexpr bool kMany = true;  // 32 registers
#elif defined(__AVX2__)
constexpr int kBytes = 32;
constexpr bool kMany = false;
#else
constexpr int kBytes = 16;
constexpr bool kMany = false;
#endif

template <class T>
struct Vector {
  typedef T type __attribute__((vector_size(kBytes)));
  static constexpr i64 kWidth = kBytes / static_cast<i64>(sizeof(T));
};

// M outputs at N vectors of positions.
template <class T, int M, int N>
inline void product_tile(i64 runs, const T* w, const T* base, const i64* offset, T* out, i64 ld) {
  using V = typename Vector<T>::type;
  constexpr i64 W = Vector<T>::kWidth;
  V acc[M][N] = {};
  for (i64 r = 0; r < runs; ++r) {
    const T* b = base + offset[r];
    V bv[N];
#pragma GCC unroll 8
    for (int j = 0; j < N; ++j) __builtin_memcpy(&bv[j], b + j * W, sizeof(V));
#pragma GCC unroll 8
    for (int i = 0; i < M; ++i) {
      const T a = w[i * runs + r];
#pragma GCC unroll 8
      for (int j = 0; j < N; ++j) acc[i][j] += a * bv[j];
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < M; ++i)
#pragma GCC unroll 8
    for (int j = 0; j < N; ++j) __builtin_memcpy(out + i * ld + j * W, &acc[i][j], sizeof(V));
}

template <class T, int N>
inline void product_column(i64 outputs, i64 runs, const T* w, const T* base, const i64* offset, T* out,
                           i64 ld) {
  constexpr int M = kMany ? 8 : 4;
  i64 o = 0;
  for (; o + M <= outputs; o += M) product_tile<T, M, N>(runs, w + o * runs, base, offset, out + o * ld, ld);
  for (; o + 2 <= outputs; o += 2) product_tile<T, 2, N>(runs, w + o * runs, base, offset, out + o * ld, ld);
  for (; o < outputs; ++o) product_tile<T, 1, N>(runs, w + o * runs, base, offset, out + o * ld, ld);
}

// M rows of g by N runs.
template <class T, int M, int N>
inline void dots_tile(i64 vectors, i64 images, const T* g, i64 ld, i64 g_image, const T* base, i64 base_image,
                      const i64* offset, T* dw, i64 runs) {
  using V = typename Vector<T>::type;
  constexpr i64 W = Vector<T>::kWidth;
  V acc[M][N] = {};
  for (i64 n = 0; n < images; ++n) {
    const T* rows[N];
    for (int j = 0; j < N; ++j) rows[j] = base + n * base_image + offset[j];
    for (i64 p = 0; p < vectors * W; p += W) {
      V gv[M];
#pragma GCC unroll 8
      for (int i = 0; i < M; ++i) __builtin_memcpy(&gv[i], g + n * g_image + i * ld + p, sizeof(V));
#pragma GCC unroll 8
      for (int j = 0; j < N; ++j) {
        V b;
        __builtin_memcpy(&b, rows[j] + p, sizeof(V));
#pragma GCC unroll 8
        for (int i = 0; i < M; ++i) acc[i][j] += gv[i] * b;
      }
    }
  }
  for (int i = 0; i < M; ++i)
    for (int j = 0; j < N; ++j) {
      T s = 0;
      for (int k = 0; k < W; ++k) s += acc[i][j][k];
      dw[i * runs + j] = s;
    }
}

template <class T, int M>
inline void dots_rows(i64 vectors, i64 runs, i64 images, const T* g, i64 ld, i64 g_image, const T* base,
                      i64 base_image, const i64* offset, T* dw) {
  constexpr int N = kMany ? 6 : 3;
  i64 r = 0;
  for (; r + N <= runs; r += N)
    dots_tile<T, M, N>(vectors, images, g, ld, g_image, base, base_image, offset + r, dw + r, runs);
  for (; r + 3 <= runs; r += 3)
    dots_tile<T, M, 3>(vectors, images, g, ld, g_image, base, base_image, offset + r, dw + r, runs);
  for (; r < runs; ++r)
    dots_tile<T, M, 1>(vectors, images, g, ld, g_image, base, base_image, offset + r, dw + r, runs);
}

}  // namespace

template <class T>
void product_of_runs(i64 outputs, i64 length, i64 runs, const T* w, const T* base, const i64* offset, T* out,
                     i64 ld) {
  constexpr i64 W = Vector<T>::kWidth;
  const i64 vectors = (length + W - 1) / W;
  i64 v = 0;
  // The pixels of three vectors stay in the nearest cache for all outputs.
  for (; v + 3 <= vectors; v += 3)
    product_column<T, 3>(outputs, runs, w, base + v * W, offset, out + v * W, ld);
  if (vectors - v == 2) product_column<T, 2>(outputs, runs, w, base + v * W, offset, out + v * W, ld);
  if (vectors - v == 1) product_column<T, 1>(outputs, runs, w, base + v * W, offset, out + v * W, ld);
}

template <class T>
void dots_of_runs(i64 outputs, i64 length, i64 runs, i64 images, const T* g, i64 ld, i64 g_image,
                  const T* base, i64 base_image, const i64* offset, T* dw) {
  constexpr i64 W = Vector<T>::kWidth;
  const i64 vectors = (length + W - 1) / W;
  i64 o = 0;
  for (; o + 4 <= outputs; o += 4)
    dots_rows<T, 4>(vectors, runs, images, g + o * ld, ld, g_image, base, base_image, offset, dw + o * runs);
  for (; o < outputs; ++o)
    dots_rows<T, 1>(vectors, runs, images, g + o * ld, ld, g_image, base, base_image, offset, dw + o * runs);
}

template <class T>
void avg_pairs(const T* a, const T* b, T* y, i64 n) {
#pragma omp simd
  for (i64 j = 0; j < n; ++j) y[j] = T(0.25) * ((a[2 * j] + a[2 * j + 1]) + (b[2 * j] + b[2 * j + 1]));
}

template <class T>
void spread_pairs(const T* y, T* a, T* b, i64 n) {
#pragma omp simd
  for (i64 j = 0; j < n; ++j) {
    const T v = T(0.25) * y[j];
    a[2 * j] = v;
    a[2 * j + 1] = v;
    b[2 * j] = v;
    b[2 * j + 1] = v;
  }
}

#define INSTANTIATE(T)                                                                               \
  template void product_of_runs(i64, i64, i64, const T*, const T*, const i64*, T*, i64);             \
  template void dots_of_runs(i64, i64, i64, i64, const T*, i64, i64, const T*, i64, const i64*, T*); \
  template void avg_pairs(const T*, const T*, T*, i64);                                              \
  template void spread_pairs(const T*, T*, T*, i64);
INSTANTIATE(float)
INSTANTIATE(double)
#undef INSTANTIATE

}  // namespace redco::kernels::REDCO_ISA
