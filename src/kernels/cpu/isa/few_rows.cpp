// Products of at most 8 rows with a large matrix. Each element of the matrix is read once, so the memory
// bandwidth limits their rate (decoding). The matrix may be bf16 (B), which is widened in registers.
#include "kernels/cpu/isa/few_rows.h"

#include <bit>

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
REDCO_INLINE void load(const bf16* p, Vector<float>::type& out) { out = floats_of(p); }
REDCO_INLINE void load(const bf16* p, Vector<double>::type& out) {
  for (i64 w = 0; w < Vector<double>::kWidth; ++w) out[w] = static_cast<double>(value(p[w]));
}

// a * b + c, rounded once where the CPU can: not as the compiler likes, so that a row has the same bits with
// any number of others.
REDCO_INLINE float fused(float a, float b, float c) {
#if defined(__FMA__)
  return __builtin_fmaf(a, b, c);
#else
  return a * b + c;
#endif
}
REDCO_INLINE double fused(double a, double b, double c) {
#if defined(__FMA__)
  return __builtin_fma(a, b, c);
#else
  return a * b + c;
#endif
}
template <class T>
REDCO_INLINE void put(T& out, T alpha, T sum, T beta) {
  out = beta == 0 ? alpha * sum : fused(beta, out, alpha * sum);
}

// M rows of a with N rows of b. Prefetches rows of b, `ahead` of these: every kParts-th one, from kPart on.
template <class T, class B, int M, int N, int kPart = 0, int kParts = 1>
inline void dots(i64 k, T alpha, const T* a, i64 lda, const B* b, i64 ldb, i64 ahead, T beta, T* c, i64 ldc) {
  using V = typename Vector<T>::type;
  constexpr i64 W = Vector<T>::kWidth;
  V acc[M * N] = {};
  i64 p = 0;
  for (; p + W <= k; p += W) {
    V bv[N];
#pragma GCC unroll 8
    for (int j = 0; j < N; ++j) {
      load(b + j * ldb + p, bv[j]);
      if (j % kParts == kPart) __builtin_prefetch(b + (ahead + j) * ldb + p, 0, 2);
    }
#pragma GCC unroll 8
    for (int i = 0; i < M; ++i) {
      V av;
      load(a + i * lda + p, av);
      // Loaded once: as an operand of each addition in memory it would be loaded N times.
      if constexpr (N > 1) REDCO_KEEP(av);
#pragma GCC unroll 8
      for (int j = 0; j < N; ++j) acc[i * N + j] += av * bv[j];
    }
  }
  T sums[M * N];
  if constexpr ((M * N & (M * N - 1)) == 0 && M * N <= W) {
    sum_each<T, M * N>(acc, sums);
  } else {
#pragma GCC unroll 8
    for (int i = 0; i < M; ++i) {
      constexpr int P = std::bit_ceil(static_cast<unsigned>(N));
      V row[P] = {};
      T of_row[P];
      for (int j = 0; j < N; ++j) row[j] = acc[i * N + j];
      sum_each<T, P>(row, of_row);
      for (int j = 0; j < N; ++j) sums[i * N + j] = of_row[j];
    }
  }
  for (; p < k; ++p)
    for (int i = 0; i < M; ++i)
      for (int j = 0; j < N; ++j)
        sums[i * N + j] = fused(a[i * lda + p], static_cast<T>(value(b[j * ldb + p])), sums[i * N + j]);
  for (int i = 0; i < M; ++i)
    for (int j = 0; j < N; ++j) put(c[i * ldc + j], alpha, sums[i * N + j], beta);
}

// A row of a with N contiguous rows of b. Each sum has the same order for any N. Prefetches `ahead` elements.
template <class T, class B, int N>
inline void dot(i64 k, T alpha, const T* a, const B* b, i64 ahead, T beta, T* c) {
  using V = typename Vector<T>::type;
  constexpr i64 W = Vector<T>::kWidth, kBytesOfB = W * static_cast<i64>(sizeof(B));
  constexpr int kChains = 4;
  constexpr i64 kLine = 64;
  V acc[N][kChains] = {};
  i64 p = 0;
  for (; p + kChains * W <= k; p += kChains * W)
#pragma GCC unroll 4
    for (int j = 0; j < kChains; ++j) {
      V av;
      load(a + p + j * W, av);
      if constexpr (N > 1) REDCO_KEEP(av);  // loaded once
#pragma GCC unroll 4
      for (int i = 0; i < N; ++i) {
        V bv;
        const B* const from = b + i * k + p + j * W;
        load(from, bv);
        if (j * kBytesOfB % kLine == 0) __builtin_prefetch(from + ahead, 0, 2);
        acc[i][j] += av * bv;
      }
    }
  for (; p + W <= k; p += W) {
    V av;
    load(a + p, av);
    for (int i = 0; i < N; ++i) {
      V bv;
      load(b + i * k + p, bv);
      acc[i][0] += av * bv;
    }
  }
  for (int i = 0; i < N; ++i) {
    const V all[1] = {(acc[i][0] + acc[i][1]) + (acc[i][2] + acc[i][3])};
    T s;
    sum_each<T>(all, &s);
    for (i64 q = p; q < k; ++q) s = fused(a[q], static_cast<T>(value(b[i * k + q])), s);
    put(c[i], alpha, s, beta);
  }
}

// Rows of b that are read together with M rows of a: as many as leave their sums, these rows and a vector of
// a in registers, because a is read again each time. 8 rows with bf16 take 4 in two parts,
// which was not compared with 3.
template <class B, int M>
constexpr int rows_together() {
  if (kRegisters == 16) return M <= 2 ? 4 : 2;
  const bool fit = M * 4 + 4 + 1 <= kRegisters, in_parts = M == 8 && sizeof(B) == 2;
  return fit || in_parts ? 4 : 3;
}

template <class T, class B, int M>
inline void dots_m(i64 n, i64 k, T alpha, const T* a, i64 lda, const B* b, i64 ldb, T beta, T* c, i64 ldc) {
  constexpr int N = rows_together<B, M>();
  constexpr bool kInParts = M * N + N + 1 > kRegisters;
  const i64 ahead = rows_ahead(kInParts ? 2 * N : N, k * static_cast<i64>(sizeof(B)));
  i64 j = 0;
  if constexpr (kInParts) {
    // In two parts. The second finds the rows of b in the cache; both prefetch, so that memory never waits.
    constexpr int kFirst = M / 2;
    for (; j + N <= n; j += N) {
      dots<T, B, kFirst, N, 0, 2>(k, alpha, a, lda, b + j * ldb, ldb, ahead, beta, c + j, ldc);
      dots<T, B, M - kFirst, N, 1, 2>(k, alpha, a + kFirst * lda, lda, b + j * ldb, ldb, ahead, beta,
                                      c + kFirst * ldc + j, ldc);
    }
  }
  if constexpr (M == 1) {
    if (ldb == k) {
      // Contiguous rows are read in order, unless that pushes a out of the L1 cache.
      constexpr int kTogether = kRegisters < 32 ? 3 : sizeof(B) == 2 ? 6 : 4;
      constexpr i64 kNearest = 16384, kAhead = 1024;  // bytes
      if (k * static_cast<i64>(sizeof(T)) >= kNearest)
        for (; j + kTogether <= n; j += kTogether)
          dot<T, B, kTogether>(k, alpha, a, b + j * k, kTogether * k, beta, c + j);
      for (; j < n; ++j)
        dot<T, B, 1>(k, alpha, a, b + j * k, kAhead / static_cast<i64>(sizeof(B)), beta, c + j);
      return;
    }
  }
  for (; j + N <= n; j += N) dots<T, B, M, N>(k, alpha, a, lda, b + j * ldb, ldb, ahead, beta, c + j, ldc);
  for (; j < n; ++j) dots<T, B, M, 1>(k, alpha, a, lda, b + j * ldb, ldb, ahead, beta, c + j, ldc);
}

// C vectors of each of M rows of c, whose sums stay in registers while the rows of b pass.
template <class T, class B, int M, int C>
inline void columns(i64 k, T alpha, const T* a, i64 lda, const B* b, i64 ldb, T beta, T* c, i64 ldc) {
  using V = typename Vector<T>::type;
  constexpr i64 W = Vector<T>::kWidth;
  // Two chains of additions where registers allow them.
  constexpr int kChains = M * C * 2 <= kRegisters / 2 ? 2 : 1;
  constexpr i64 kAhead = 16;
  V acc[kChains][M][C] = {};
  const auto add = [&](V(&sums)[M][C], i64 p) __attribute__((always_inline)) {
#pragma GCC unroll 8
    for (int j = 0; j < C; ++j) {
      V bv;
      load(b + p * ldb + j * W, bv);
      __builtin_prefetch(b + (p + kAhead) * ldb + j * W, 0, 2);
#pragma GCC unroll 8
      for (int i = 0; i < M; ++i) sums[i][j] += a[i * lda + p] * bv;
    }
  };
  i64 p = 0;
  for (; p + kChains <= k; p += kChains) {
#pragma GCC unroll 2
    for (int s = 0; s < kChains; ++s) add(acc[s], p + s);
  }
  if (p < k) add(acc[0], p);
  for (int i = 0; i < M; ++i)
    for (int j = 0; j < C; ++j) {
      V sum = acc[0][i][j];
      if constexpr (kChains == 2) sum += acc[1][i][j];
      T* const out = c + i * ldc + j * W;
      V y = alpha * sum;
      if (beta != 0) {
        V before;
        load(out, before);
        y += beta * before;
      }
      __builtin_memcpy(out, &y, sizeof y);
    }
}

template <class T, class B, int M>
inline void columns_m(i64 n, i64 k, T alpha, const T* a, i64 lda, const B* b, i64 ldb, T beta, T* c,
                      i64 ldc) {
  constexpr i64 W = Vector<T>::kWidth;
  // As many as the registers hold. With few registers in two parts, which read b twice: then from the cache.
  constexpr bool kInParts = kRegisters == 16 && M > 5;
  constexpr int kFirst = kInParts ? M / 2 : M, kLast = M - kFirst;
  constexpr int C = kRegisters == 32 ? (M <= 6 ? 4 : 2) : M <= 2 ? 4 : 2;
  i64 j = 0;
  for (; j + C * W <= n; j += C * W) {
    columns<T, B, kFirst, C>(k, alpha, a, lda, b + j, ldb, beta, c + j, ldc);
    if constexpr (kInParts)
      columns<T, B, kLast, C>(k, alpha, a + kFirst * lda, lda, b + j, ldb, beta, c + kFirst * ldc + j, ldc);
  }
  for (; j + W <= n; j += W) columns<T, B, M, 1>(k, alpha, a, lda, b + j, ldb, beta, c + j, ldc);
  for (; j < n; ++j)
    for (int i = 0; i < M; ++i) {
      T s = 0;
      for (i64 p = 0; p < k; ++p) s += a[i * lda + p] * value(b[p * ldb + j]);
      T& out = c[i * ldc + j];
      out = beta == 0 ? alpha * s : alpha * s + beta * out;
    }
}

constexpr int kKeys = 4;  // keys that are read together; the next ones are prefetched

// out += p v for M rows of p (heads that share a value head) and N keys.
template <class T, class B, int M, int N>
inline void add_values(i64 D, const T* p, i64 ldp, const B* v, i64 ldv, T* out, i64 ldo) {
  using V = typename Vector<T>::type;
  constexpr i64 W = Vector<T>::kWidth;
  i64 d = 0;
  for (; d + W <= D; d += W) {
    V vv[N];
#pragma GCC unroll 4
    for (int j = 0; j < N; ++j) {
      load(v + j * ldv + d, vv[j]);
      __builtin_prefetch(v + (kKeys + j) * ldv + d, 0, 2);
    }
#pragma GCC unroll 8
    for (int i = 0; i < M; ++i) {
      V sum;
      load(out + i * ldo + d, sum);
#pragma GCC unroll 4
      for (int j = 0; j < N; ++j) sum += p[i * ldp + j] * vv[j];
      __builtin_memcpy(out + i * ldo + d, &sum, sizeof sum);
    }
  }
  for (; d < D; ++d)
    for (int i = 0; i < M; ++i)
      for (int j = 0; j < N; ++j) out[i * ldo + d] += p[i * ldp + j] * value(v[j * ldv + d]);
}

// Calls f<M>(i) for groups of M rows that begin at row i. Rows of f64 are taken one by one: f64 serves
// checks, and one instance instead of eight compiles in an eighth of the time.
template <class T, class F>
inline void for_rows(i64 m, const F& f) {
  if constexpr (std::is_same_v<T, double>) {
    for (i64 i = 0; i < m; ++i) f.template operator()<1>(i);
  } else {
    with_rows(m, [&]<int M>() { f.template operator()<M>(0); });
  }
}

}  // namespace

template <class T, class B>
void head_scores(const HeadRows& h, i64 keys, const T* q, const B* k, i64 ldk, T* s, i64 lds) {
  for_rows<T>(h.shared, [&]<int M>(i64 i) {
    i64 j = 0;
    for (; j + kKeys <= keys; j += kKeys)
      for (i64 g = 0; g < h.groups; ++g)
        dots<T, B, M, kKeys>(h.D, 1, q + (g * h.shared + i) * h.D, h.D, k + j * ldk + g * h.D, ldk, kKeys, 0,
                             s + (g * h.shared + i) * lds + j, lds);
    for (; j < keys; ++j)
      for (i64 g = 0; g < h.groups; ++g)
        dots<T, B, M, 1>(h.D, 1, q + (g * h.shared + i) * h.D, h.D, k + j * ldk + g * h.D, ldk, kKeys, 0,
                         s + (g * h.shared + i) * lds + j, lds);
  });
}

template <class T, class B>
void head_values(const HeadRows& h, i64 keys, const T* p, i64 ldp, const B* v, i64 ldv, T* out, i64 ldo) {
  for_rows<T>(h.shared, [&]<int M>(i64 i) {
    i64 j = 0;
    for (; j + kKeys <= keys; j += kKeys)
      for (i64 g = 0; g < h.groups; ++g)
        add_values<T, B, M, kKeys>(h.D, p + (g * h.shared + i) * ldp + j, ldp, v + j * ldv + g * h.D, ldv,
                                   out + (g * h.shared + i) * ldo, ldo);
    for (; j < keys; ++j)
      for (i64 g = 0; g < h.groups; ++g)
        add_values<T, B, M, 1>(h.D, p + (g * h.shared + i) * ldp + j, ldp, v + j * ldv + g * h.D, ldv,
                               out + (g * h.shared + i) * ldo, ldo);
  });
}

template <class T, class B>
void rows_times_bt(i64 m, i64 n, i64 k, T alpha, const T* a, i64 lda, const B* b, i64 ldb, T beta, T* c,
                   i64 ldc) {
  for_rows<T>(m, [&]<int M>(i64 i) {
    dots_m<T, B, M>(n, k, alpha, a + i * lda, lda, b, ldb, beta, c + i * ldc, ldc);
  });
}

template <class T, class B>
void rows_times_b(i64 m, i64 n, i64 k, T alpha, const T* a, i64 lda, const B* b, i64 ldb, T beta, T* c,
                  i64 ldc) {
  for_rows<T>(m, [&]<int M>(i64 i) {
    columns_m<T, B, M>(n, k, alpha, a + i * lda, lda, b, ldb, beta, c + i * ldc, ldc);
  });
}

#define INSTANTIATE(T, B)                                                                  \
  template void rows_times_bt(i64, i64, i64, T, const T*, i64, const B*, i64, T, T*, i64); \
  template void rows_times_b(i64, i64, i64, T, const T*, i64, const B*, i64, T, T*, i64);  \
  template void head_scores(const HeadRows&, i64, const T*, const B*, i64, T*, i64);       \
  template void head_values(const HeadRows&, i64, const T*, i64, const B*, i64, T*, i64);
INSTANTIATE(float, float)
INSTANTIATE(double, double)
INSTANTIATE(float, bf16)
INSTANTIATE(double, bf16)
#undef INSTANTIATE

}  // namespace redco::kernels::REDCO_ISA
