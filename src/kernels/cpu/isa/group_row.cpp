// Products of one row with a matrix of 8-bit or 4-bit groups. The row is rounded to 16-bit integers with a
// scale for each group. So a group's part of a sum is exact in 32-bit integers (|sum| <= 32 * 127 * 32767),
// and costs half as many instructions as with weights that are converted to fp32. With more rows the
// conversion is shared, and fp32 is faster (groups.cpp).
#include <immintrin.h>

#include "kernels/cpu/groups.h"
#include "kernels/cpu/isa/few_rows.h"
#include "kernels/cpu/isa/fp16.h"
#include "kernels/cpu/isa/ranges.h"

namespace redco::kernels::REDCO_ISA {
namespace {

typedef float Vector __attribute__((vector_size(kBytes)));
#if defined(__AVX512F__)
typedef __m512i Words;  // 16-bit integers
#elif defined(__AVX2__)
typedef __m256i Words;
#else
typedef __m128i Words;
#endif
constexpr int kWords = kBytes / 2, kParts = kGroup / kWords;  // words of a vector; vectors of a group
typedef i32 Sums __attribute__((vector_size(kBytes)));

REDCO_INLINE Words load_words(const std::int16_t* p) {
  Words w;
  __builtin_memcpy(&w, p, sizeof w);
  return w;
}
// Sums of products of neighbours.
REDCO_INLINE Sums multiplied(Words a, Words b) {
#if defined(__AVX512F__)
  return __builtin_bit_cast(Sums, _mm512_madd_epi16(a, b));
#elif defined(__AVX2__)
  return __builtin_bit_cast(Sums, _mm256_madd_epi16(a, b));
#else
  return __builtin_bit_cast(Sums, _mm_madd_epi16(a, b));
#endif
}

// The values of a group, without the scale.
REDCO_INLINE void load_group(const Group8& g, Words (&w)[kParts]) {
#if defined(__AVX512F__)
  w[0] = _mm512_maskz_cvtepi8_epi16(~__mmask32{0},
                                    _mm256_loadu_si256(reinterpret_cast<const __m256i*>(g.values)));
#elif defined(__AVX2__)
  for (int v = 0; v < kParts; ++v)
    w[v] = _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(g.values + v * kWords)));
#else
  for (int v = 0; v < kParts; ++v)
    w[v] = _mm_cvtepi8_epi16(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(g.values + v * kWords)));
#endif
}
REDCO_INLINE void load_group(const Group4& g, Words (&w)[kParts]) {
  const __m128i pairs = _mm_loadu_si128(reinterpret_cast<const __m128i*>(g.values));
  const __m128i low = pairs, high = _mm_srli_epi16(pairs, 4);
#if defined(__AVX2__)
  const __m256i both = _mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1);
  const __m256i bytes = _mm256_sub_epi8(_mm256_and_si256(both, _mm256_set1_epi8(15)), _mm256_set1_epi8(8));
#if defined(__AVX512F__)
  w[0] = _mm512_maskz_cvtepi8_epi16(~__mmask32{0}, bytes);
#else
  w[0] = _mm256_cvtepi8_epi16(_mm256_castsi256_si128(bytes));
  w[1] = _mm256_cvtepi8_epi16(_mm256_extracti128_si256(bytes, 1));
#endif
#else
  const __m128i nibble = _mm_set1_epi8(15), zero = _mm_set1_epi8(8);
  const __m128i halves[2] = {_mm_sub_epi8(_mm_and_si128(low, nibble), zero),
                             _mm_sub_epi8(_mm_and_si128(high, nibble), zero)};
  for (int v = 0; v < kParts; ++v)
    w[v] = _mm_cvtepi8_epi16(v % 2 == 0 ? halves[v / 2] : _mm_srli_si128(halves[v / 2], 8));
#endif
}

// scales[j]: the scale of group g of row j, times `by`.
template <class G, int N>
REDCO_INLINE void load_scales(const G* b, i64 groups, float by, float (&scales)[N]) {
#if defined(__F16C__)
  if constexpr (N == 4) {
    const auto bits = [&](int j) { return static_cast<short>(b[j * groups].scale); };
    const __m128i four = _mm_setr_epi16(bits(0), bits(1), bits(2), bits(3), 0, 0, 0, 0);
    _mm_storeu_ps(scales, _mm_mul_ps(_mm_cvtph_ps(four), _mm_set1_ps(by)));
    // Read from memory they are broadcast by the load; from a register each takes a shuffle.
    asm("" : "+m"(scales));
    return;
  }
#endif
  for (int j = 0; j < N; ++j) scales[j] = scale_of(b[j * groups].scale) * by;
}

// N rows of b.
template <class G, int N>
inline void dots(i64 groups, const RowOfWords& a, const G* b, i64 ahead, float* c) {
  Vector acc[N] = {};
  for (i64 g = 0; g < groups; ++g) {
    float scales[N];
    load_scales(b + g, groups, a.scales[g], scales);
    Words x[kParts];
#pragma GCC unroll 4
    for (int v = 0; v < kParts; ++v) x[v] = load_words(a.words + g * kGroup + v * kWords);
#pragma GCC unroll 4
    for (int j = 0; j < N; ++j) {
      __builtin_prefetch(b + (ahead + j) * groups + g, 0, 2);
      Words w[kParts];
      load_group(b[j * groups + g], w);
      Sums sums = multiplied(w[0], x[0]);
#pragma GCC unroll 4
      for (int v = 1; v < kParts; ++v) sums += multiplied(w[v], x[v]);
      acc[j] += __builtin_convertvector(sums, Vector) * scales[j];
    }
  }
  sum_each<float, N>(acc, c);
}

}  // namespace

void to_words(const float* x, i64 n, std::int16_t* words, float* scales) {
  for (i64 g = 0; g < groups_in(n); ++g, words += kGroup) {
    float padded[kGroup] = {};
    const i64 size = n - g * kGroup < kGroup ? n - g * kGroup : kGroup;
    __builtin_memcpy(padded, x + g * kGroup, static_cast<std::size_t>(size) * sizeof(float));
    float most = 0, rest = 0;
    for (i64 i = 0; i < kGroup; ++i) {
      most = abs_(padded[i]) > most ? abs_(padded[i]) : most;
      rest += padded[i] - padded[i];  // NaN if an element is not finite
    }
    constexpr float kTop = 32767, kTiny = 1e-33f;  // below, kTop / most would overflow
    const bool tiny = !(most > kTiny);
    scales[g] = (tiny ? 0.0f : most / kTop) + rest;
    const float by = tiny || rest != 0 ? 0.0f : kTop / most;
    for (i64 i = 0; i < kGroup; ++i) {
      const float w = by > 0 ? padded[i] * by : 0.0f;  // not NaN, which no integer can hold
      words[i] = static_cast<std::int16_t>(w + (w < 0 ? -0.5f : 0.5f));
    }
  }
}

template <class G>
void row_times_groups(i64 n, i64 groups, const RowOfWords& a, const G* b, float* c) {
  constexpr int N = streamed_rows(1);
  const i64 ahead = rows_ahead(N, groups * static_cast<i64>(sizeof(G)));
  i64 j = 0;
  for (; j + N <= n; j += N) dots<G, N>(groups, a, b + j * groups, ahead, c + j);
  for (; j < n; ++j) dots<G, 1>(groups, a, b + j * groups, ahead, c + j);
}

template void row_times_groups(i64, i64, const RowOfWords&, const Group8*, float*);
template void row_times_groups(i64, i64, const RowOfWords&, const Group4*, float*);

}  // namespace redco::kernels::REDCO_ISA
