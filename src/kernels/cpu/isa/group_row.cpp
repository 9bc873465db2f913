// Products of one row with a matrix of 8-bit or 4-bit groups. The row is rounded to 16-bit integers with a
// scale for each group. So a group's part of a sum is exact in 32-bit integers (|sum| <= 32 * 127 * 32639),
// and costs half as many instructions as with weights that are converted to fp32, or a quarter (4 bits). With
// more rows the conversion is shared, and fp32 is faster (groups.cpp).
#include <utility>

#include "kernels/cpu/groups.h"
#include "kernels/cpu/isa/few_rows.h"
#include "kernels/cpu/isa/ranges.h"
#include "kernels/isa.h"

namespace redco::kernels::REDCO_ISA {
namespace {

using Vector = Floats;
using Sums = Ints;
constexpr int kWords = kBytes / 2, kParts = kGroup / kWords;  // words of a vector; vectors of a group

REDCO_INLINE Words load_words(const std::int16_t* p) {
  Words w;
  __builtin_memcpy(&w, p, sizeof w);
  return w;
}

// --- 8 bits: lanes are elements of a row -------------------------------------------------------------------

// N rows of b.
template <int N>
inline void dots(i64 groups, const RowOfWords& a, const Group8* b, i64 ahead, float* c) {
  const auto* const words = reinterpret_cast<const std::int16_t*>(a.parts);
  constexpr i64 kStride = sizeof(Group8);
  Vector acc[N] = {};
  for (i64 g = 0; g < groups; ++g) {
    float scales[N];
    scales_times(reinterpret_cast<const std::byte*>(&b[g].scale), groups * kStride, a.scales[g], scales);
    Words x[kParts];
#pragma GCC unroll 4
    for (int v = 0; v < kParts; ++v) x[v] = load_words(words + g * kGroup + v * kWords);
#pragma GCC unroll 4
    for (int j = 0; j < N; ++j) {
      __builtin_prefetch(b + (ahead + j) * groups + g, 0, 2);
      Words w[kParts];
      const std::int8_t* const values = b[j * groups + g].values;
#pragma GCC unroll 4
      for (int v = 0; v < kParts; ++v) w[v] = words_of(values + v * kWords);
      Sums sums = add_neighbours(w[0], x[0]);
#pragma GCC unroll 4
      for (int v = 1; v < kParts; ++v) sums += add_neighbours(w[v], x[v]);
      acc[j] += __builtin_convertvector(sums, Vector) * scales[j];
    }
  }
  sum_each<float, N>(acc, c);
}

// --- 4 bits: lanes are rows --------------------------------------------------------------------------------

constexpr int kLanes = kBytes / 4;  // rows of a block
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
// group adds eight (at most 8 * 2 * 15 * 128 = 30720), or of four in a sum.
REDCO_INLINE void add_products(Words& sums, Block unsigned_bytes, const std::int8_t* part) {
  std::uint32_t bytes;
  __builtin_memcpy(&bytes, part, sizeof bytes);
  sums += add_byte_neighbours(unsigned_bytes, Block{} + bytes);
}
// 256 upper + lower, of the sums of a group.
REDCO_INLINE Sums joined(const Words& lower, const Words& upper) {
  return add_neighbours(upper, Words{} + 256) + add_neighbours(lower, Words{} + 1);
}
#if defined(REDCO_BYTE_PRODUCTS)
REDCO_INLINE void add_products(Sums& sums, Block unsigned_bytes, const std::int8_t* part) {
  add_byte_products(sums, unsigned_bytes, part);
}
REDCO_INLINE Sums joined(const Sums& lower, const Sums& upper) { return (upper << 8) + lower; }
#endif

// The dots of kLanes rows, `row` groups apart. Part: Words, or Sums with REDCO_BYTE_PRODUCTS.
template <class Part>
inline void block_dots(i64 groups, const RowOfWords& a, const Group4* b, i64 row, float* c) {
  // The next blocks: nearer ones have not arrived when they are read.
  constexpr i64 kAhead = 16384;
  const auto* next = reinterpret_cast<const std::byte*>(b + kLanes * row) + kAhead;
  Vector acc = {};
  constexpr i64 kSize = sizeof(Group4), kStep = kLanes * kSize;
  for (i64 g = 0; g < groups; ++g, ++b) {
#pragma GCC unroll 8
    for (i64 line = 0; line < (kStep + 63) / 64; ++line) __builtin_prefetch(next + line * 64, 0, 2);
    next += kStep;
    Block x[4], v[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) x[i] = every_fourth(b[i * row].values, 4 * row * kSize);
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
    // The scales and minima of a group of all rows.
    const auto lines = scale_pairs(reinterpret_cast<const std::byte*>(b), row * kSize);
    acc += __builtin_convertvector(joined(lower, upper), Vector) * (lines.first * a.scales[g]);
    acc += lines.second * a.sums[g];
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
#if defined(REDCO_BYTE_PRODUCTS)
  // The sums are exact integers either way.
  if (isa() >= Isa::avx512_bf16) return rows_of_blocks<Sums>(n, groups, a, b, c);
#endif
  rows_of_blocks<Words>(n, groups, a, b, c);
}

}  // namespace redco::kernels::REDCO_ISA
