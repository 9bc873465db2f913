// Products of at most 8 rows with a large matrix. Each element of the matrix is read once, so the memory
// bandwidth limits their rate (decoding). The matrix may be bf16 (B), which is widened in registers.
#include "kernels/cpu/isa/few_rows.h"

#include <immintrin.h>

#include "kernels/cpu/isa/ranges.h"

namespace redco::kernels::REDCO_ISA {
namespace {

template <class T>
struct Vector {
  typedef T type __attribute__((vector_size(kBytes)));
  static constexpr i64 kWidth = kBytes / static_cast<i64>(sizeof(T));
};

REDCO_INLINE float value(float x) { return x; }
REDCO_INLINE double value(double x) { return x; }
REDCO_INLINE float value(bf16 x) { return from_bits(static_cast<u32>(x.bits) << 16); }

// A vector from consecutive elements.
REDCO_INLINE void load(const float* p, Vector<float>::type& out) { __builtin_memcpy(&out, p, sizeof out); }
REDCO_INLINE void load(const double* p, Vector<double>::type& out) { __builtin_memcpy(&out, p, sizeof out); }
REDCO_INLINE void load(const bf16* p, Vector<float>::type& out) {
  // One instruction; the compiler's conversion of a vector takes four.
#if defined(__AVX512F__)
  const __m512i words = _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  const __m512i wide = _mm512_slli_epi32(words, 16);
#elif defined(__AVX2__)
  const __m256i words = _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  const __m256i wide = _mm256_slli_epi32(words, 16);
#else
  typedef u16 Half __attribute__((vector_size(kBytes / 2)));
  typedef u32 Words __attribute__((vector_size(kBytes)));
  Half half;
  __builtin_memcpy(&half, p, sizeof half);
  const Words wide = __builtin_convertvector(half, Words) << 16;
#endif
  __builtin_memcpy(&out, &wide, sizeof out);
}
REDCO_INLINE void load(const bf16* p, Vector<double>::type& out) {
  for (i64 w = 0; w < Vector<double>::kWidth; ++w) out[w] = static_cast<double>(value(p[w]));
}

template <class T, class B, int M, int N>
inline void dots(i64 k, T alpha, const T* a, i64 lda, const B* b, i64 ldb, T beta, T* c, i64 ldc) {
  using V = typename Vector<T>::type;
  constexpr i64 W = Vector<T>::kWidth;
  V acc[M][N] = {};
  i64 p = 0;
  for (; p + W <= k; p += W) {
    V bv[N];
#pragma GCC unroll 8
    for (int j = 0; j < N; ++j) {
      load(b + j * ldb + p, bv[j]);
      // The rows that come next: rows are too short for the processor to foresee them.
      __builtin_prefetch(b + (N + j) * ldb + p, 0, 2);
    }
#pragma GCC unroll 8
    for (int i = 0; i < M; ++i) {
      V av;
      load(a + i * lda + p, av);
#pragma GCC unroll 8
      for (int j = 0; j < N; ++j) acc[i][j] += av * bv[j];
    }
  }
  for (int i = 0; i < M; ++i) {
    for (int j = 0; j < N; ++j) {
      T s = 0;
      if constexpr (sizeof(B) == sizeof(T)) {
        for (int w = 0; w < W; ++w) s += acc[i][j][w];
      } else {
        s = sum_by_halves<T>(acc[i][j]);
      }
      for (i64 q = p; q < k; ++q) s += a[i * lda + q] * value(b[j * ldb + q]);
      T& out = c[i * ldc + j];
      out = beta == 0 ? alpha * s : alpha * s + beta * out;
    }
  }
}

template <class T, class B, int M>
inline void dots_m(i64 n, i64 k, T alpha, const T* a, i64 lda, const B* b, i64 ldb, T beta, T* c, i64 ldc) {
  constexpr int N = streamed_rows(M);
  i64 j = 0;
  for (; j + N <= n; j += N) dots<T, B, M, N>(k, alpha, a, lda, b + j * ldb, ldb, beta, c + j, ldc);
  for (; j < n; ++j) dots<T, B, M, 1>(k, alpha, a, lda, b + j * ldb, ldb, beta, c + j, ldc);
}

}  // namespace

template <class T, class B>
void rows_times_bt(i64 m, i64 n, i64 k, T alpha, const T* a, i64 lda, const B* b, i64 ldb, T beta, T* c,
                   i64 ldc) {
  with_rows(m, [&]<int M>() { dots_m<T, B, M>(n, k, alpha, a, lda, b, ldb, beta, c, ldc); });
}

template <class T, class B>
void rows_times_b(i64 m, i64 n, i64 k, T alpha, const T* a, i64 lda, const B* b, i64 ldb, T beta, T* c,
                  i64 ldc) {
  constexpr i64 kColumns = 1024;  // columns of c, kept in L1 with the four rows of b
  for (i64 j0 = 0; j0 < n; j0 += kColumns) {
    const i64 cols = n - j0 < kColumns ? n - j0 : kColumns;
    for (i64 i = 0; i < m; ++i) {
      T* out = c + i * ldc + j0;
      if (beta == 0) {
        for (i64 j = 0; j < cols; ++j) out[j] = 0;
      } else {
        for (i64 j = 0; j < cols; ++j) out[j] *= beta;
      }
    }
    i64 p = 0;
    for (; p + 4 <= k; p += 4) {
      const B *b0 = b + p * ldb + j0, *b1 = b0 + ldb, *b2 = b1 + ldb, *b3 = b2 + ldb;
      for (i64 i = 0; i < m; ++i) {
        const T* f = a + i * lda + p;
        const T f0 = alpha * f[0], f1 = alpha * f[1], f2 = alpha * f[2], f3 = alpha * f[3];
        T* out = c + i * ldc + j0;
#pragma omp simd
        for (i64 j = 0; j < cols; ++j)
          out[j] += (f0 * value(b0[j]) + f1 * value(b1[j])) + (f2 * value(b2[j]) + f3 * value(b3[j]));
      }
    }
    for (; p < k; ++p) {
      const B* b0 = b + p * ldb + j0;
      for (i64 i = 0; i < m; ++i) {
        const T f0 = alpha * a[i * lda + p];
        T* out = c + i * ldc + j0;
#pragma omp simd
        for (i64 j = 0; j < cols; ++j) out[j] += f0 * value(b0[j]);
      }
    }
  }
}

#define INSTANTIATE(T, B)                                                                  \
  template void rows_times_bt(i64, i64, i64, T, const T*, i64, const B*, i64, T, T*, i64); \
  template void rows_times_b(i64, i64, i64, T, const T*, i64, const B*, i64, T, T*, i64);
INSTANTIATE(float, float)
INSTANTIATE(double, double)
INSTANTIATE(float, bf16)
INSTANTIATE(double, bf16)
#undef INSTANTIATE

}  // namespace redco::kernels::REDCO_ISA
