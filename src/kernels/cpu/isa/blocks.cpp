// Blocks that are only read from files (q4_0, q5_0, q5_1, q4_k, q5_k, q6_k): conversion to fp32, and products
// of rows with a matrix of them. One row is rounded to 16-bit integers with a scale for each part, as in
// group_row.cpp: the sum of a part is exact in 32-bit integers. With more rows, a few rows of the matrix are
// expanded to fp32 in the L1 cache.
#include <immintrin.h>

#include "kernels/cpu/groups.h"
#include "kernels/cpu/isa/few_rows.h"
#include "kernels/cpu/isa/fp16.h"
#include "kernels/cpu/isa/ranges.h"

namespace redco::kernels::REDCO_ISA {
namespace {

typedef float FloatsOf __attribute__((vector_size(kBytes)));
typedef std::int16_t WordsOf __attribute__((vector_size(kBytes)));
typedef i32 SumsOf __attribute__((vector_size(kBytes)));
constexpr int kPerWords = kBytes / 2, kWordsOfPart = kGroup / kPerWords;

// The codes of a part, less what is subtracted from all of them.
typedef std::uint8_t Codes __attribute__((vector_size(32)));
typedef std::uint16_t CodePairs __attribute__((vector_size(32)));

REDCO_INLINE void load_codes(const std::uint8_t* p, Codes& to) { __builtin_memcpy(&to, p, sizeof to); }
// (x >> count) & mask of each byte.
REDCO_INLINE void bits_of(const Codes& x, int count, int mask, Codes& to) {
  const auto both = static_cast<std::uint16_t>(mask | mask << 8);
  to = __builtin_bit_cast(Codes, __builtin_bit_cast(CodePairs, x) >> count & both);
}

// The nibbles of 16 bytes: the lower ones, then the upper ones.
REDCO_INLINE void nibbles_of(const std::uint8_t* p, Codes& to) {
  const __m128i x = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
#if defined(__AVX2__)
  const __m256i both = _mm256_inserti128_si256(_mm256_castsi128_si256(x), _mm_srli_epi16(x, 4), 1);
  to = __builtin_bit_cast(Codes, _mm256_and_si256(both, _mm256_set1_epi8(15)));
#else
  const __m128i mask = _mm_set1_epi8(15);
  const __m128i halves[2] = {_mm_and_si128(x, mask), _mm_and_si128(_mm_srli_epi16(x, 4), mask)};
  __builtin_memcpy(&to, halves, sizeof to);
#endif
}
// 16 where the bit of a code is set.
REDCO_INLINE void fifth_of(const std::uint8_t* p, Codes& to) {
  i32 bits;
  __builtin_memcpy(&bits, p, sizeof bits);
  constexpr i64 kBits = static_cast<i64>(0x8040201008040201ULL);
#if defined(__AVX2__)
  const __m256i order = _mm256_setr_epi64x(0, 0x0101010101010101, 0x0202020202020202, 0x0303030303030303);
  const __m256i bit = _mm256_set1_epi64x(kBits);
  const __m256i of_code = _mm256_and_si256(_mm256_shuffle_epi8(_mm256_set1_epi32(bits), order), bit);
  to = __builtin_bit_cast(Codes, _mm256_and_si256(_mm256_cmpeq_epi8(of_code, bit), _mm256_set1_epi8(16)));
#else
  const __m128i bit = _mm_set1_epi64x(kBits);
  const auto half = [&](__m128i order) {
    const __m128i of_code = _mm_and_si128(_mm_shuffle_epi8(_mm_set1_epi32(bits), order), bit);
    return _mm_and_si128(_mm_cmpeq_epi8(of_code, bit), _mm_set1_epi8(16));
  };
  const __m128i halves[2] = {half(_mm_set_epi64x(0x0101010101010101, 0)),
                             half(_mm_set_epi64x(0x0303030303030303, 0x0202020202020202))};
  __builtin_memcpy(&to, halves, sizeof to);
#endif
}

REDCO_INLINE void codes_of(const Symmetric4& b, int, Codes& to) {
  nibbles_of(b.values, to);
  to -= 8;
}
REDCO_INLINE void codes_of(const Symmetric5& b, int, Codes& to) {
  Codes fifth;
  nibbles_of(b.values, to);
  fifth_of(b.fifth, fifth);
  to += fifth;
  to -= 16;
}
REDCO_INLINE void codes_of(const Affine5& b, int, Codes& to) {
  Codes fifth;
  nibbles_of(b.values, to);
  fifth_of(b.fifth, fifth);
  to += fifth;
}
REDCO_INLINE void codes_of(const Super4& b, int part, Codes& to) {
  Codes x;
  load_codes(b.values + part / 2 * 32, x);
  bits_of(x, part % 2 * 4, 15, to);
}
REDCO_INLINE void codes_of(const Super5& b, int part, Codes& to) {
  Codes x, fifth;
  load_codes(b.values + part / 2 * 32, x);
  bits_of(x, part % 2 * 4, 15, to);
  load_codes(b.fifth, x);
  bits_of(x, part, 1, fifth);
  to += fifth << 4;
}
REDCO_INLINE void codes_of(const Super6& b, int part, Codes& to) {
  const int half = part / 4, run = part % 4;
  Codes x, upper;
  load_codes(b.values + 64 * half + run % 2 * 32, x);
  bits_of(x, run / 2 * 4, 15, to);
  load_codes(b.upper + 32 * half, x);
  bits_of(x, run * 2, 3, upper);
  to += upper << 4;
  to -= 32;
}

// What turns the codes of all parts of a block into weights: step * code - low. q6_k: the step of a part
// without its two scales.
template <class G>
struct Lines {
  float steps[kParts<G>], lows[kParts<G>];
};
REDCO_INLINE void lines_of(const Symmetric4& b, Lines<Symmetric4>& to) { to.steps[0] = scale_of(b.scale); }
REDCO_INLINE void lines_of(const Symmetric5& b, Lines<Symmetric5>& to) { to.steps[0] = scale_of(b.scale); }
REDCO_INLINE void lines_of(const Affine5& b, Lines<Affine5>& to) {
  to.steps[0] = scale_of(b.scale);
  to.lows[0] = -scale_of(b.minimum);
}
// Scales and minima of 6 bits: those of parts 0 to 3 in the lower bits of bytes 0 to 3 and 4 to 7, whose
// upper two bits belong to parts 4 to 7, as do the nibbles of bytes 8 to 11.
template <class G>
REDCO_INLINE void lines_of_super(const G& b, Lines<G>& to) {
  u32 x[3];
  __builtin_memcpy(x, b.parts, sizeof x);
  constexpr u32 kSix = 0x3f3f3f3f, kFour = 0x0f0f0f0f, kTwo = 0x03030303;
  const u32 parts[4] = {x[0] & kSix, (x[2] & kFour) | (x[0] >> 6 & kTwo) << 4, x[1] & kSix,
                        (x[2] >> 4 & kFour) | (x[1] >> 6 & kTwo) << 4};
  std::uint8_t numbers[16];
  __builtin_memcpy(numbers, parts, sizeof numbers);
  const float scale = scale_of(b.scale), minimum = scale_of(b.minimum);
#pragma GCC unroll 8
  for (int p = 0; p < 8; ++p) {
    to.steps[p] = scale * static_cast<float>(numbers[p]);
    to.lows[p] = minimum * static_cast<float>(numbers[p + 8]);
  }
}
REDCO_INLINE void lines_of(const Super4& b, Lines<Super4>& to) { lines_of_super(b, to); }
REDCO_INLINE void lines_of(const Super5& b, Lines<Super5>& to) { lines_of_super(b, to); }
REDCO_INLINE void lines_of(const Super6& b, Lines<Super6>& to) {
  const float scale = scale_of(b.scale);
  for (float& step : to.steps) step = scale;
}

// Codes as floats.
constexpr int kLanes = kBytes / 4, kFloatsOfPart = kGroup / kLanes;
REDCO_INLINE void floats_of(const Codes& codes, FloatsOf (&to)[kFloatsOfPart]) {
  __m128i halves[2];
  __builtin_memcpy(halves, &codes, sizeof halves);
#pragma GCC unroll 8
  for (int v = 0; v < kFloatsOfPart; ++v) {
    const __m128i half = halves[v * kLanes / 16];
#if defined(__AVX512F__)
    const auto words = __builtin_bit_cast(SumsOf, _mm512_maskz_cvtepi8_epi32(0xffff, half));
#elif defined(__AVX2__)
    const auto words =
        __builtin_bit_cast(SumsOf, _mm256_cvtepi8_epi32(v % 2 == 0 ? half : _mm_unpackhi_epi64(half, half)));
#else
    const auto words = __builtin_bit_cast(SumsOf, _mm_cvtepi8_epi32(v % 4 == 0   ? half
                                                                    : v % 4 == 1 ? _mm_srli_si128(half, 4)
                                                                    : v % 4 == 2 ? _mm_srli_si128(half, 8)
                                                                                 : _mm_srli_si128(half, 12)));
#endif
    to[v] = __builtin_convertvector(words, FloatsOf);
  }
}

// 32 weights. Each is rounded once: what is added or multiplied last is the only inexact operation.
template <class G>
REDCO_INLINE void expand(const G& b, const Lines<G>& lines, int part, float* y) {
  Codes codes;
  codes_of(b, part, codes);
  FloatsOf w[kFloatsOfPart];
  floats_of(codes, w);
#pragma GCC unroll 8
  for (int v = 0; v < kFloatsOfPart; ++v) {
    if constexpr (std::is_same_v<G, Super6>) {
      w[v] *= lines.steps[part] * static_cast<float>(b.parts[2 * part + v * kLanes / 16]);
    } else {
      w[v] *= lines.steps[part];
    }
    if constexpr (kHasMinimum<G>) w[v] -= lines.lows[part];
  }
  __builtin_memcpy(y, w, sizeof w);
}

// The codes of a part as words; q6_k: times their scales.
template <class G>
REDCO_INLINE void words_of(const G& b, int part, WordsOf (&w)[kWordsOfPart]) {
  Codes codes;
  codes_of(b, part, codes);
#if defined(__AVX512F__)
  w[0] = __builtin_bit_cast(WordsOf,
                            _mm512_maskz_cvtepi8_epi16(~__mmask32{0}, __builtin_bit_cast(__m256i, codes)));
#else
  __m128i halves[2];
  __builtin_memcpy(halves, &codes, sizeof halves);
#if defined(__AVX2__)
  for (int v = 0; v < 2; ++v) w[v] = __builtin_bit_cast(WordsOf, _mm256_cvtepi8_epi16(halves[v]));
#else
  for (int v = 0; v < 4; ++v)
    w[v] = __builtin_bit_cast(
        WordsOf, _mm_cvtepi8_epi16(v % 2 == 0 ? halves[v / 2] : _mm_srli_si128(halves[v / 2], 8)));
#endif
#endif
  if constexpr (std::is_same_v<G, Super6>) {
    const std::int16_t first = b.parts[2 * part], second = b.parts[2 * part + 1];
#if defined(__AVX512F__)
    w[0] *=
        __builtin_bit_cast(WordsOf, _mm512_mask_set1_epi16(_mm512_set1_epi16(first), 0xffff0000u, second));
#else
    for (int v = 0; v < kWordsOfPart; ++v) {
      const std::int16_t by = v < kWordsOfPart / 2 ? first : second;
#if defined(__AVX2__)
      w[v] *= __builtin_bit_cast(WordsOf, _mm256_set1_epi16(by));
#else
      w[v] *= __builtin_bit_cast(WordsOf, _mm_set1_epi16(by));
#endif
    }
#endif
  }
}
// Sums of products of neighbours. |sum| <= 32 * 32 * 128 * 32639 / lanes < 2^31.
REDCO_INLINE SumsOf product_of(const WordsOf& a, const WordsOf& b) {
#if defined(__AVX512F__)
  return __builtin_bit_cast(
      SumsOf, _mm512_madd_epi16(__builtin_bit_cast(__m512i, a), __builtin_bit_cast(__m512i, b)));
#elif defined(__AVX2__)
  return __builtin_bit_cast(
      SumsOf, _mm256_madd_epi16(__builtin_bit_cast(__m256i, a), __builtin_bit_cast(__m256i, b)));
#else
  return __builtin_bit_cast(SumsOf,
                            _mm_madd_epi16(__builtin_bit_cast(__m128i, a), __builtin_bit_cast(__m128i, b)));
#endif
}

// N rows of b, each of `blocks` blocks.
template <class G, int N>
inline void dots_of_blocks(i64 blocks, const RowOfWords& a, const G* b, i64 ahead, float* c) {
  constexpr int P = static_cast<int>(kParts<G>);
  const auto* words = reinterpret_cast<const std::int16_t*>(a.parts);
  FloatsOf acc[N] = {};
  float low[N] = {};
  for (i64 g = 0; g < blocks; ++g, words += P * kGroup) {
    Lines<G> lines[N];
#pragma GCC unroll 4
    for (int j = 0; j < N; ++j) {
      const G& block = b[j * blocks + g];
      const auto* const next = reinterpret_cast<const char*>(b + (ahead + j) * blocks + g);
#pragma GCC unroll 4
      for (unsigned line = 0; line < sizeof(G); line += 64) __builtin_prefetch(next + line, 0, 2);
      lines_of(block, lines[j]);
#pragma GCC unroll 8
      for (int p = 0; p < P; ++p) {
        if constexpr (kHasMinimum<G>) low[j] += lines[j].lows[p] * a.sums[g * P + p];
        lines[j].steps[p] *= a.scales[g * P + p];
      }
      asm("" : "+m"(lines[j]));  // broadcast by loads
    }
#pragma GCC unroll 8
    for (int p = 0; p < P; ++p) {
      WordsOf x[kWordsOfPart];
      __builtin_memcpy(x, words + p * kGroup, sizeof x);
#pragma GCC unroll 4
      for (int j = 0; j < N; ++j) {
        WordsOf w[kWordsOfPart];
        words_of(b[j * blocks + g], p, w);
        SumsOf sums = product_of(w[0], x[0]);
#pragma GCC unroll 4
        for (int v = 1; v < kWordsOfPart; ++v) sums += product_of(w[v], x[v]);
        acc[j] += __builtin_convertvector(sums, FloatsOf) * lines[j].steps[p];
      }
    }
  }
  sum_each<float, N>(acc, c);
  if constexpr (kHasMinimum<G>)
    for (int j = 0; j < N; ++j) c[j] -= low[j];
}

}  // namespace

template <class G>
void from_groups(const G* x, i64 first, float* y, i64 n) {
  constexpr i64 P = kParts<G>;
  Lines<G> lines{};
  i64 of = -1;  // the block of `lines`
  for (i64 i = 0; i < n; i += kGroup) {
    const i64 part = (first + i) / kGroup, block = part / P;
    if (block != of) lines_of(x[block], lines);
    of = block;
    if (n - i >= kGroup) {
      expand(x[block], lines, static_cast<int>(part % P), y + i);
      continue;
    }
    float last[kGroup];
    expand(x[block], lines, static_cast<int>(part % P), last);
    __builtin_memcpy(y + i, last, static_cast<std::size_t>(n - i) * sizeof(float));
  }
}

template <class G>
void rows_times_groups(i64 m, i64 n, i64 k, const float* a, i64 lda, const G* b, float* c, i64 ldc) {
  // Rows of b that are expanded together, and their columns: 16 KiB.
  constexpr i64 kRows = 4, kColumns = 1024;
  float wide[kRows * kColumns];
  const i64 row = blocks_in<G>(k);
  for (i64 j = 0; j < n; j += kRows) {
    const i64 rows = n - j < kRows ? n - j : kRows;
    for (i64 p = 0; p < k; p += kColumns) {
      const i64 columns = k - p < kColumns ? k - p : kColumns;
      for (i64 r = 0; r < rows; ++r) from_groups(b + (j + r) * row, p, wide + r * kColumns, columns);
      rows_times_bt(m, rows, columns, 1.0f, a + p, lda, wide, kColumns, p == 0 ? 0.0f : 1.0f, c + j, ldc);
    }
  }
}

template <class G>
void row_times_groups(i64 n, i64 groups, const RowOfWords& a, const G* b, float* c) {
  constexpr int N = 4;
  const i64 blocks = groups / kParts<G>, ahead = rows_ahead(N, blocks * static_cast<i64>(sizeof(G)));
  i64 j = 0;
  for (; j + N <= n; j += N) dots_of_blocks<G, N>(blocks, a, b + j * blocks, ahead, c + j);
  for (; j < n; ++j) dots_of_blocks<G, 1>(blocks, a, b + j * blocks, ahead, c + j);
}

void sum_words(i64 groups, const std::int16_t* words, const float* scales, float* sums) {
  for (i64 g = 0; g < groups; ++g, words += kGroup) {
    i32 sum = 0;
    for (i64 i = 0; i < kGroup; ++i) sum += words[i];
    sums[g] = scales[g] * static_cast<float>(sum);  // |sum| < 2^24
  }
}

#define INSTANTIATE(G)                                                                      \
  template void from_groups(const G*, i64, float*, i64);                                    \
  template void rows_times_groups(i64, i64, i64, const float*, i64, const G*, float*, i64); \
  template void row_times_groups(i64 n, i64 groups, const RowOfWords& a, const G* b, float* c);
INSTANTIATE(Symmetric4)
INSTANTIATE(Symmetric5)
INSTANTIATE(Affine5)
INSTANTIATE(Super4)
INSTANTIATE(Super5)
INSTANTIATE(Super6)
#undef INSTANTIATE

}  // namespace redco::kernels::REDCO_ISA
