// Blocks that are only read from files (q4_0, q5_0, q5_1, q4_k, q5_k, q6_k): conversion to fp32, and products
// of rows with a matrix of them. One row is rounded to 16-bit integers with a scale for each part, as in
// group_row.cpp: the sum of a part is exact in 32-bit integers. With more rows, a few rows of the matrix are
// expanded to fp32 in the L1 cache.
#include "kernels/cpu/groups.h"
#include "kernels/cpu/isa/codes.h"
#include "kernels/cpu/isa/few_rows.h"
#include "kernels/cpu/isa/ranges.h"

namespace redco::kernels::REDCO_ISA {
namespace {

static_assert(kGroup == 32);
typedef std::uint16_t CodePairs __attribute__((vector_size(32)));

REDCO_INLINE void load_codes(const std::uint8_t* p, Codes& to) { __builtin_memcpy(&to, p, sizeof to); }
// (x >> count) & mask of each byte.
REDCO_INLINE void bits_of(const Codes& x, int count, int mask, Codes& to) {
  const auto both = static_cast<std::uint16_t>(mask | mask << 8);
  to = __builtin_bit_cast(Codes, __builtin_bit_cast(CodePairs, x) >> count & both);
}

REDCO_INLINE void codes_of(const Symmetric4& b, int, Codes& to) {
  nibbles_of(b.values, to);
  to -= 8;
}
template <class G>
REDCO_INLINE void codes_of_5_bits(const G& b, Codes& to) {
  Codes fifth;
  nibbles_of(b.values, to);
  fifth_of(b.fifth, fifth);
  to += fifth;
}
REDCO_INLINE void codes_of(const Affine5& b, int, Codes& to) { codes_of_5_bits(b, to); }
REDCO_INLINE void codes_of(const Symmetric5& b, int, Codes& to) {
  codes_of_5_bits(b, to);
  to -= 16;
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

constexpr int kLanes = kBytes / 4;

// 32 weights. Each is rounded once: what is added or multiplied last is the only inexact operation.
template <class G>
REDCO_INLINE void expand(const G& b, const Lines<G>& lines, int part, float* y) {
  Codes codes;
  codes_of(b, part, codes);
  Floats w[kFloatsOfCodes];
  floats_of(codes, w);
#pragma GCC unroll 8
  for (int v = 0; v < kFloatsOfCodes; ++v) {
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
REDCO_INLINE void words_of_part(const G& b, int part, Words (&w)[kWordsOfCodes]) {
  Codes codes;
  codes_of(b, part, codes);
  words_of(codes, w);
  if constexpr (std::is_same_v<G, Super6>) times_halves(w, b.parts[2 * part], b.parts[2 * part + 1]);
}

// N rows of b, each of `blocks` blocks.
template <class G, int N>
inline void dots_of_blocks(i64 blocks, const RowOfWords& a, const G* b, i64 ahead, float* c) {
  constexpr int P = static_cast<int>(kParts<G>);
  const auto* words = reinterpret_cast<const std::int16_t*>(a.parts);
  Floats acc[N] = {};
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
      Words x[kWordsOfCodes];
      __builtin_memcpy(x, words + p * kGroup, sizeof x);
#pragma GCC unroll 4
      for (int j = 0; j < N; ++j) {
        Words w[kWordsOfCodes];
        words_of_part(b[j * blocks + g], p, w);
        // |sum| <= 32 * 32 * 128 * 32639 / lanes < 2^31.
        Ints sums = add_neighbours(w[0], x[0]);
#pragma GCC unroll 4
        for (int v = 1; v < kWordsOfCodes; ++v) sums += add_neighbours(w[v], x[v]);
        acc[j] += __builtin_convertvector(sums, Floats) * lines[j].steps[p];
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
REDCO_EACH_READ_GROUP(INSTANTIATE)
#undef INSTANTIATE

}  // namespace redco::kernels::REDCO_ISA
