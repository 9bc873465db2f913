// Products of one row with a matrix of 8-bit or 4-bit groups. The row is rounded to 16-bit integers with a
// scale for each group. So a group's part of a sum is exact in 32-bit integers (|sum| <= 32 * 127 * 32639),
// and costs half as many instructions as with weights that are converted to fp32, or a quarter (4 bits). With
// more rows the conversion is shared, and fp32 is faster (groups.cpp).
#include <immintrin.h>

#include <utility>

#include "kernels/cpu/groups.h"
#include "kernels/cpu/isa/few_rows.h"
#include "kernels/cpu/isa/fp16.h"
#include "kernels/cpu/isa/ranges.h"
#include "kernels/isa.h"

namespace redco::kernels::REDCO_ISA {
namespace {

typedef float Vector __attribute__((vector_size(kBytes)));
typedef std::int16_t Words __attribute__((vector_size(kBytes)));
typedef i32 Sums __attribute__((vector_size(kBytes)));
constexpr int kWords = kBytes / 2, kParts = kGroup / kWords;  // words of a vector; vectors of a group
#if defined(__AVX512F__)
typedef __m512i Register;
#elif defined(__AVX2__)
typedef __m256i Register;
#else
typedef __m128i Register;
#endif

REDCO_INLINE Words load_words(const std::int16_t* p) {
  Words w;
  __builtin_memcpy(&w, p, sizeof w);
  return w;
}
// Sums of products of neighbours.
REDCO_INLINE Sums multiplied(Words a, Words b) {
  const Register x = __builtin_bit_cast(Register, a), y = __builtin_bit_cast(Register, b);
#if defined(__AVX512F__)
  return __builtin_bit_cast(Sums, _mm512_madd_epi16(x, y));
#elif defined(__AVX2__)
  return __builtin_bit_cast(Sums, _mm256_madd_epi16(x, y));
#else
  return __builtin_bit_cast(Sums, _mm_madd_epi16(x, y));
#endif
}

// --- 8 bits: lanes are elements of a row -------------------------------------------------------------------

// The values of a group, without the scale. (GCC 12 converts a vector of bytes in two halves.)
REDCO_INLINE void load_group(const Group8& g, Words (&w)[kParts]) {
  for (int v = 0; v < kParts; ++v) {
    const std::int8_t* const p = g.values + v * kWords;
#if defined(__AVX512F__)
    w[v] = __builtin_bit_cast(
        Words,
        _mm512_maskz_cvtepi8_epi16(~__mmask32{0}, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))));
#elif defined(__AVX2__)
    w[v] =
        __builtin_bit_cast(Words, _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
#else
    w[v] = __builtin_bit_cast(Words, _mm_cvtepi8_epi16(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p))));
#endif
  }
}

// scales[j]: the scale of group g of row j, times `by`.
template <int N>
REDCO_INLINE void load_scales(const Group8* b, i64 groups, float by, float (&scales)[N]) {
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
template <int N>
inline void dots(i64 groups, const RowOfWords& a, const Group8* b, i64 ahead, float* c) {
  const auto* const words = reinterpret_cast<const std::int16_t*>(a.parts);
  Vector acc[N] = {};
  for (i64 g = 0; g < groups; ++g) {
    float scales[N];
    load_scales(b + g, groups, a.scales[g], scales);
    Words x[kParts];
#pragma GCC unroll 4
    for (int v = 0; v < kParts; ++v) x[v] = load_words(words + g * kGroup + v * kWords);
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

// --- 4 bits: lanes are rows --------------------------------------------------------------------------------

constexpr int kLanes = kBytes / 4;  // rows of a block
typedef std::uint32_t Block __attribute__((vector_size(kBytes)));
typedef std::uint64_t Pairs __attribute__((vector_size(kBytes)));

// The lower or upper halves of each 16 bytes of a and b, their elements in turn.
template <bool Upper, class V, std::size_t... I>
REDCO_INLINE V in_turn(V a, V b, std::index_sequence<I...>) {
  constexpr std::size_t n = sizeof...(I), part = n * 16 / kBytes;
  return __builtin_shufflevector(a, b,
                                 (I / part * part + (Upper ? part / 2 : 0) + I % part / 2 + I % 2 * n)...);
}
template <bool Upper>
REDCO_INLINE Block in_turn(Block a, Block b) {
  return in_turn<Upper>(a, b, std::make_index_sequence<kBytes / 4>());
}
template <bool Upper>
REDCO_INLINE Block pairs_in_turn(Block a, Block b) {
  return __builtin_bit_cast(Block, in_turn<Upper>(__builtin_bit_cast(Pairs, a), __builtin_bit_cast(Pairs, b),
                                                  std::make_index_sequence<kBytes / 8>()));
}
// Sums of products of unsigned bytes and the four signed bytes at `part`: of two neighbours in a word, whose
// group adds eight (at most 8 * 2 * 15 * 128 = 30720), or of four with AVX512-VNNI.
REDCO_INLINE void add_products(Words& sums, Block unsigned_bytes, const std::int8_t* part) {
  std::uint32_t bytes;
  __builtin_memcpy(&bytes, part, sizeof bytes);
  const auto x = __builtin_bit_cast(Register, unsigned_bytes),
             y = __builtin_bit_cast(Register, Block{} + bytes);
#if defined(__AVX512F__)
  sums += __builtin_bit_cast(Words, _mm512_maddubs_epi16(x, y));
#elif defined(__AVX2__)
  sums += __builtin_bit_cast(Words, _mm256_maddubs_epi16(x, y));
#else
  sums += __builtin_bit_cast(Words, _mm_maddubs_epi16(x, y));
#endif
}
// 256 upper + lower, of the sums of a group.
REDCO_INLINE Sums joined(const Words& lower, const Words& upper) {
  return multiplied(upper, Words{} + 256) + multiplied(lower, Words{} + 1);
}
#if defined(__AVX512F__)
REDCO_INLINE void add_products(Sums& sums, Block unsigned_bytes, const std::int8_t* part) {
  // Not an intrinsic: those need a function that is compiled for AVX512-VNNI.
  asm("vpdpbusd %2%{1to16%}, %1, %0"
      : "+v"(sums)
      : "v"(unsigned_bytes), "m"(*reinterpret_cast<const std::int8_t(*)[4]>(part)));
}
REDCO_INLINE Sums joined(const Sums& lower, const Sums& upper) { return (upper << 8) + lower; }
#endif

// Rows 0, 4, 8, ... of a block: a group's 16 bytes of each. `quad`: groups of four rows.
REDCO_INLINE Block every_fourth(const Group4* b, i64 quad) {
  const auto load = [&](i64 j) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(b[j * quad].values));
  };
#if defined(__AVX512F__)
  __m512i x = _mm512_castsi128_si512(load(0));
  x = _mm512_mask_broadcast_i32x4(x, 0xf0, load(1));
  x = _mm512_mask_broadcast_i32x4(x, 0xf00, load(2));
  x = _mm512_mask_broadcast_i32x4(x, 0xf000, load(3));
#elif defined(__AVX2__)
  const __m256i x = _mm256_inserti128_si256(_mm256_castsi128_si256(load(0)), load(1), 1);
#else
  (void)quad;
  const __m128i x = load(0);
#endif
  return __builtin_bit_cast(Block, x);
}

// The scales and minima of a group of all rows.
struct Lines {
  Vector scales, minima;
};
REDCO_INLINE Lines lines_of(const Group4* b, i64 row) {
#if defined(__F16C__)
  // Scale and minimum of four rows.
  const auto four = [&](i64 first) {
    const auto pair = [&](i64 j) {
      i32 bits;
      __builtin_memcpy(&bits, b + (first + j) * row, sizeof bits);
      return bits;
    };
    __m128i x = _mm_cvtsi32_si128(pair(0));
    x = _mm_insert_epi32(x, pair(1), 1);
    x = _mm_insert_epi32(x, pair(2), 2);
    return _mm_insert_epi32(x, pair(3), 3);
  };
  // Of eight rows: the scales, then the minima.
  struct Halves {
    __m128i scales, minima;
  };
  const auto eight = [&](i64 first) {
    const __m128i order = _mm_setr_epi8(0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15);
    const __m128i low = _mm_shuffle_epi8(four(first), order), high = _mm_shuffle_epi8(four(first + 4), order);
    return Halves{_mm_unpacklo_epi64(low, high), _mm_unpackhi_epi64(low, high)};
  };
  const Halves first = eight(0);
#if defined(__AVX512F__)
  const Halves second = eight(8);
  const auto wide = [](__m128i low, __m128i high) {
    const __m256i halves = _mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1);
    return __builtin_bit_cast(Vector, _mm512_maskz_cvtph_ps(static_cast<__mmask16>(-1), halves));
  };
  return {wide(first.scales, second.scales), wide(first.minima, second.minima)};
#else
  return {__builtin_bit_cast(Vector, _mm256_cvtph_ps(first.scales)),
          __builtin_bit_cast(Vector, _mm256_cvtph_ps(first.minima))};
#endif
#else
  Lines v;
  for (int j = 0; j < kLanes; ++j) {
    v.scales[j] = scale_of(b[j * row].scale);
    v.minima[j] = scale_of(b[j * row].minimum);
  }
  return v;
#endif
}

// The dots of kLanes rows, `row` groups apart. Part: Words, or Sums with AVX512-VNNI.
template <class Part>
inline void block_dots(i64 groups, const RowOfWords& a, const Group4* b, i64 row, float* c) {
  // The next blocks: nearer ones have not arrived when they are read.
  constexpr i64 kAhead = 16384;
  const auto* next = reinterpret_cast<const std::byte*>(b + kLanes * row) + kAhead;
  Vector acc = {};
  for (i64 g = 0; g < groups; ++g, ++b) {
    constexpr i64 kStep = kLanes * static_cast<i64>(sizeof(Group4));
#pragma GCC unroll 8
    for (i64 line = 0; line < (kStep + 63) / 64; ++line) __builtin_prefetch(next + line * 64, 0, 2);
    next += kStep;
    Block x[4], v[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) x[i] = every_fourth(b + i * row, 4 * row);
    // v[d]: bytes 4 d to 4 d + 3 of each row, a lane each.
    const Block a0 = in_turn<false>(x[0], x[1]), a1 = in_turn<true>(x[0], x[1]);
    const Block b0 = in_turn<false>(x[2], x[3]), b1 = in_turn<true>(x[2], x[3]);
    v[0] = pairs_in_turn<false>(a0, b0), v[1] = pairs_in_turn<true>(a0, b0);
    v[2] = pairs_in_turn<false>(a1, b1), v[3] = pairs_in_turn<true>(a1, b1);
    // Four bytes of the row for each lane: 0 to 31 are the lower parts of the words, 32 to 63 the upper ones.
    const std::int8_t* const bytes = a.parts + g * 64;
    Part lower = {}, upper = {};
#pragma GCC unroll 4
    for (int d = 0; d < 4; ++d) {
      constexpr std::uint32_t kNibbles = 0x0f0f0f0f;
      const Block first = v[d] & kNibbles, second = v[d] >> 4 & kNibbles;
      add_products(lower, first, bytes + 4 * d);
      add_products(upper, first, bytes + 32 + 4 * d);
      add_products(lower, second, bytes + 16 + 4 * d);
      add_products(upper, second, bytes + 48 + 4 * d);
    }
    const Lines lines = lines_of(b, row);
    acc += __builtin_convertvector(joined(lower, upper), Vector) * (lines.scales * a.scales[g]);
    acc += lines.minima * a.sums[g];
  }
  __builtin_memcpy(c, &acc, sizeof acc);
}

// n rows of b, in blocks of kLanes. The last block ends with the last row, and repeats some rows.
template <class Part>
void rows_of_blocks(i64 n, i64 groups, const RowOfWords& a, const Group4* b, float* c) {
  float sums[kLanes];
  if (n < kLanes) {
    for (i64 j = 0; j < n; ++j) {
      block_dots<Part>(groups, a, b + j * groups, 0, sums);
      c[j] = sums[0];
    }
    return;
  }
  for (i64 j = 0; j < n; j += kLanes) {
    const i64 first = j + kLanes <= n ? j : n - kLanes;
    block_dots<Part>(groups, a, b + first * groups, groups, sums);
    __builtin_memcpy(c + first, sums, sizeof sums);
  }
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
    constexpr float kTop = kTopWord, kTiny = 1e-33f;  // below, kTop / most would overflow
    const bool tiny = !(most > kTiny);
    scales[g] = (tiny ? 0.0f : most / kTop) + rest;
    const float by = tiny || rest != 0 ? 0.0f : kTop / most;
    for (i64 i = 0; i < kGroup; ++i) {
      const float w = by > 0 ? padded[i] * by : 0.0f;  // not NaN, which no integer can hold
      words[i] = static_cast<std::int16_t>(w + (w < 0 ? -0.5f : 0.5f));
    }
  }
}

void split_words(i64 groups, std::int16_t* words, const float* scales, float* sums) {
  for (i64 g = 0; g < groups; ++g, words += kGroup) {
    std::int8_t parts[2 * kGroup];
    i32 sum = 0;
    for (i64 i = 0; i < kGroup; ++i) {
      parts[i] = static_cast<std::int8_t>(words[i] & 255);
      parts[kGroup + i] = static_cast<std::int8_t>((words[i] - parts[i]) / 256);
      sum += words[i];
    }
    __builtin_memcpy(words, parts, sizeof parts);
    sums[g] = scales[g] * static_cast<float>(sum);  // |sum| < 2^24
  }
}

void row_times_groups(i64 n, i64 groups, const RowOfWords& a, const Group8* b, float* c) {
  constexpr int N = 4;
  const i64 ahead = rows_ahead(N, groups * static_cast<i64>(sizeof(Group8)));
  i64 j = 0;
  for (; j + N <= n; j += N) dots<N>(groups, a, b + j * groups, ahead, c + j);
  for (; j < n; ++j) dots<1>(groups, a, b + j * groups, ahead, c + j);
}

void row_times_groups(i64 n, i64 groups, const RowOfWords& a, const Group4* b, float* c) {
#if defined(__AVX512F__)
  // The sums are exact integers either way.
  if (isa() >= Isa::avx512_bf16) return rows_of_blocks<Sums>(n, groups, a, b, c);
#endif
  rows_of_blocks<Words>(n, groups, a, b, c);
}

}  // namespace redco::kernels::REDCO_ISA
