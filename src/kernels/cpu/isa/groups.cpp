// Groups of 8-bit and 4-bit weights: conversions, and products of at most 8 rows with a matrix of groups,
// which are expanded in registers.
#include "kernels/cpu/groups.h"

#include <immintrin.h>

#include "kernels/cpu/isa/few_rows.h"
#include "kernels/cpu/isa/fp16.h"
#include "kernels/cpu/isa/ranges.h"

namespace redco::kernels::REDCO_ISA {
namespace {

constexpr int W = kBytes / 4, kVectors = kGroup / W;
typedef float Vector __attribute__((vector_size(kBytes)));

// W consecutive signed bytes as floats. The lower part of `bytes` holds them if W < 16.
REDCO_INLINE Vector widen(__m128i bytes) {
#if defined(__AVX512F__)
  const __m512i words = _mm512_maskz_cvtepi8_epi32(0xffff, bytes);  // without a mask GCC 12 warns
#elif defined(__AVX2__)
  const __m256i words = _mm256_cvtepi8_epi32(bytes);
#else
  const __m128i words = _mm_cvtepi8_epi32(bytes);
#endif
  typedef i32 Words __attribute__((vector_size(kBytes)));
  return __builtin_convertvector(__builtin_bit_cast(Words, words), Vector);
}

// W bytes at p.
REDCO_INLINE __m128i load_bytes(const void* p) {
#if defined(__AVX512F__)
  return _mm_loadu_si128(static_cast<const __m128i*>(p));
#elif defined(__AVX2__)
  return _mm_loadl_epi64(static_cast<const __m128i*>(p));
#else
  i32 word;
  __builtin_memcpy(&word, p, sizeof word);
  return _mm_cvtsi32_si128(word);
#endif
}

// Values [v W, v W + W) of a group, without the scale.
REDCO_INLINE Vector values(const Group8& g, int v) { return widen(load_bytes(g.values + v * W)); }
REDCO_INLINE Vector values(const Group4& g, int v) {
  constexpr int kHalf = kVectors / 2;  // vectors of low nibbles
  const __m128i pairs = load_bytes(g.values + v % kHalf * W);
  const __m128i nibbles = _mm_and_si128(v < kHalf ? pairs : _mm_srli_epi16(pairs, 4), _mm_set1_epi8(15));
  return widen(_mm_sub_epi8(nibbles, _mm_set1_epi8(8)));
}

template <class G>
REDCO_INLINE void expand(const G& g, float* y) {
  const float scale = scale_of(g.scale);
#pragma GCC unroll 8
  for (int v = 0; v < kVectors; ++v) {
    const Vector w = values(g, v) * scale;
    __builtin_memcpy(y + v * W, &w, sizeof w);
  }
}

// The scale in fp16 with largest / scale = top. NaN if an element is not finite.
REDCO_INLINE u32 scale_bits(const float* x, float largest, float top) {
  float rest = 0;
  for (i64 i = 0; i < kGroup; ++i) rest += x[i] - x[i];
  return rest == 0 ? fp16_bits(to_bits(largest / top)) : 0x7e00u;
}

// The nearest integer to x / scale + zero in [low, high]; zero if the scale is 0 or NaN.
REDCO_INLINE i32 nearest(float x, float scale, float zero, float low, float high) {
  float q = __builtin_floorf(x / scale + (zero + 0.5f));
  q = q < low ? low : q > high ? high : q;
  return static_cast<i32>(scale < 0 || scale > 0 ? q : zero);
}

void compress(const float* x, Group8& g) {
  float most = 0;
  for (i64 i = 0; i < kGroup; ++i) most = abs_(x[i]) > most ? abs_(x[i]) : most;
  const u32 bits = scale_bits(x, most, 127.0f);
  const float scale = fp16_value(bits);
  g.scale = static_cast<u16>(bits);
  for (i64 i = 0; i < kGroup; ++i) g.values[i] = static_cast<std::int8_t>(nearest(x[i], scale, 0, -127, 127));
}

void compress(const float* x, Group4& g) {
  float most = 0;
  for (i64 i = 0; i < kGroup; ++i) most = abs_(x[i]) > abs_(most) ? x[i] : most;
  const u32 bits = scale_bits(x, most, -8.0f);
  const float scale = fp16_value(bits);
  g.scale = static_cast<u16>(bits);
  for (i64 i = 0; i < kGroup / 2; ++i) {
    const i32 low = nearest(x[i], scale, 8, 0, 15), high = nearest(x[i + kGroup / 2], scale, 8, 0, 15);
    g.values[i] = static_cast<std::uint8_t>(low | high << 4);
  }
}

template <class G, int M, int N>
inline void dots(i64 k, const float* a, i64 lda, const G* b, i64 ahead, float* c, i64 ldc) {
  Vector acc[M * N] = {};
  const i64 row = groups_in(k), whole = k / kGroup;
  for (i64 g = 0; g < whole; ++g) {
    float scale[N];
#pragma GCC unroll 8
    for (int j = 0; j < N; ++j) {
      scale[j] = scale_of(b[j * row + g].scale);
      __builtin_prefetch(b + (ahead + j) * row + g, 0, 2);
    }
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      Vector w[N];
#pragma GCC unroll 8
      for (int j = 0; j < N; ++j) w[j] = values(b[j * row + g], v) * scale[j];
#pragma GCC unroll 8
      for (int i = 0; i < M; ++i) {
        Vector x;
        __builtin_memcpy(&x, a + i * lda + g * kGroup + v * W, sizeof x);
        if constexpr (N > 1) asm("" : "+v"(x));  // loaded once, not for each addition
#pragma GCC unroll 8
        for (int j = 0; j < N; ++j) acc[i * N + j] += x * w[j];
      }
    }
  }
  float sums[M * N];
#pragma GCC unroll 32
  for (int i = 0; i < M * N; ++i) {
    const Vector one[1] = {acc[i]};
    sum_each<float>(one, sums + i);
  }
  for (int j = 0; j < N; ++j) {
    float last[kGroup] = {};
    if (whole < row) expand(b[j * row + whole], last);
    for (int i = 0; i < M; ++i) {
      float s = sums[i * N + j];
      for (i64 q = whole * kGroup; q < k; ++q) s += a[i * lda + q] * last[q - whole * kGroup];
      c[i * ldc + j] = s;
    }
  }
}

template <class G, int M>
inline void dots_m(i64 n, i64 k, const float* a, i64 lda, const G* b, float* c, i64 ldc) {
  constexpr int N = kRegisters == 32 ? (M <= 5 ? 4 : 2) : M <= 2 ? 4 : M <= 4 ? 2 : 1;
  const i64 row = groups_in(k), ahead = rows_ahead(N, row * static_cast<i64>(sizeof(G)));
  i64 j = 0;
  for (; j + N <= n; j += N) dots<G, M, N>(k, a, lda, b + j * row, ahead, c + j, ldc);
  for (; j < n; ++j) dots<G, M, 1>(k, a, lda, b + j * row, ahead, c + j, ldc);
}

}  // namespace

template <class G>
void to_groups(const float* x, G* y, i64 n) {
  for (i64 g = 0; g < groups_in(n); ++g) {
    float padded[kGroup] = {};
    const i64 size = n - g * kGroup < kGroup ? n - g * kGroup : kGroup;
    __builtin_memcpy(padded, x + g * kGroup, static_cast<std::size_t>(size) * sizeof(float));
    compress(padded, y[g]);
  }
}

template <class G>
void from_groups(const G* x, float* y, i64 n) {
  i64 g = 0;
  for (; (g + 1) * kGroup <= n; ++g) expand(x[g], y + g * kGroup);
  if (g * kGroup == n) return;
  float last[kGroup];
  expand(x[g], last);
  __builtin_memcpy(y + g * kGroup, last, static_cast<std::size_t>(n - g * kGroup) * sizeof(float));
}

template <class G>
void rows_times_groups(i64 m, i64 n, i64 k, const float* a, i64 lda, const G* b, float* c, i64 ldc) {
  with_rows(m, [&]<int M>() { dots_m<G, M>(n, k, a, lda, b, c, ldc); });
}

#define INSTANTIATE(G)                              \
  template void to_groups(const float*, G*, i64);   \
  template void from_groups(const G*, float*, i64); \
  template void rows_times_groups(i64, i64, i64, const float*, i64, const G*, float*, i64);
INSTANTIATE(Group8)
INSTANTIATE(Group4)
#undef INSTANTIATE

}  // namespace redco::kernels::REDCO_ISA
