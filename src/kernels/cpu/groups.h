// Blocks of quantized weights: DType::q8 and the types after it. The bytes of a block are those of ggml
// (ggml-common.h): Q8_0 (q8), Q4_1 (q4) and the types of the same names.
//
// A block is one part of 32 weights, or eight: a superblock of 256 (q4_k, q5_k, q6_k). Parts are what kernels
// compute with; they have the numbers that turn a code of few bits into a weight:
//   q8           scale * code, codes in [-127, 127]; scale = largest magnitude / 127 where redco quantizes
//   q4_0, q5_0   scale * (code - 8), scale * (code - 16)
//   q4, q5_1     scale * code + minimum
//   q4_k, q5_k   scale * part_scale * code - minimum * part_minimum; both of the part have 6 bits
//   q6_k         scale * part_scale * (code - 32), with a part_scale of 8 bits for each half of a part
// Codes of 4 bits lie in nibbles: code i < 16 of a part in the lower half of byte i, code i + 16 in the upper
// half. Superblocks: two parts share 32 bytes, one has the lower nibbles, the next one the upper nibbles.
// Further bits of the codes are apart.
//
// redco itself quantizes to q8 and q4. Scale and minimum of q4 have the least sum of weighted squared errors
// among several candidates (isa/group_fit.cpp). Weights that 4 bits with a scale and their least or greatest
// value as minimum hold exactly are kept exactly.
// Scale and minimum are rounded first, and the values are the nearest ones. Values times scales are exact in
// fp32. A group with an element that is not finite, or that fp16 cannot hold (q4), becomes NaN. In groups
// whose magnitudes are all below about 1e-5, scales are subnormal in fp16, and precision is lost.
//
// A row of n weights is whole blocks; what a short last group of q8 and q4 lacks has the value 0 (q8) or any
// finite value (q4).
#pragma once

#include "base/types.h"

namespace redco::kernels {

constexpr i64 kGroup = 32;  // weights of a part
constexpr i64 groups_in(i64 n) { return ceil_div(n, kGroup); }

struct Group8 {
  std::uint16_t scale;
  std::int8_t values[kGroup];
};
struct Group4 {
  std::uint16_t scale;
  std::uint16_t minimum;
  std::uint8_t values[kGroup / 2];
};
struct Symmetric4 {
  std::uint16_t scale;
  std::uint8_t values[kGroup / 2];
};
struct Symmetric5 {
  std::uint16_t scale;
  std::uint8_t fifth[4];  // bit i: of code i
  std::uint8_t values[kGroup / 2];
};
struct Affine5 {
  std::uint16_t scale;
  std::uint16_t minimum;
  std::uint8_t fifth[4];
  std::uint8_t values[kGroup / 2];
};
struct Super4 {
  std::uint16_t scale;
  std::uint16_t minimum;
  std::uint8_t parts[12];  // scales and minima of 6 bits
  std::uint8_t values[128];
};
struct Super5 {
  std::uint16_t scale;
  std::uint16_t minimum;
  std::uint8_t parts[12];
  std::uint8_t fifth[32];  // byte i: of code i of each part, part 0 in the lowest bit
  std::uint8_t values[128];
};
// Each half of 128 weights: parts 0 and 1 have the lower nibbles of 32 bytes each, parts 2 and 3 the upper
// ones.
struct Super6 {
  std::uint8_t values[128];
  std::uint8_t upper[64];  // two bits; byte i of a half: of code i of its parts, the first in the lowest bits
  std::int8_t parts[16];
  std::uint16_t scale;
};

// Blocks that only files of others have, for explicit instantiations.
#define REDCO_EACH_READ_GROUP(F) F(Symmetric4) F(Symmetric5) F(Affine5) F(Super4) F(Super5) F(Super6)

// Calls f with a block of the type.
template <class F>
decltype(auto) visit_groups(DType t, F&& f) {
  switch (t) {
    case DType::q4:
      return f(Group4{});
    case DType::q4_0:
      return f(Symmetric4{});
    case DType::q5_0:
      return f(Symmetric5{});
    case DType::q5_1:
      return f(Affine5{});
    case DType::q4_k:
      return f(Super4{});
    case DType::q5_k:
      return f(Super5{});
    case DType::q6_k:
      return f(Super6{});
    default:
      return f(Group8{});
  }
}

template <class G>
constexpr bool kMade = std::is_same_v<G, Group8> || std::is_same_v<G, Group4>;  // by redco
template <class G>
constexpr bool kSuper = std::is_same_v<G, Super4> || std::is_same_v<G, Super5> || std::is_same_v<G, Super6>;
template <class G>
constexpr bool kHasMinimum = std::is_same_v<G, Group4> || std::is_same_v<G, Affine5> ||
                             std::is_same_v<G, Super4> || std::is_same_v<G, Super5>;
template <class G>
constexpr i64 kParts = kSuper<G> ? 8 : 1;  // of a block

static_assert(sizeof(Group8) == bytes_of(DType::q8, kGroup) && sizeof(Group4) == bytes_of(DType::q4, kGroup));
static_assert(sizeof(Symmetric4) == bytes_of(DType::q4_0, kGroup) &&
              sizeof(Symmetric5) == bytes_of(DType::q5_0, kGroup) &&
              sizeof(Affine5) == bytes_of(DType::q5_1, kGroup));
static_assert(sizeof(Super4) == bytes_of(DType::q4_k, 8 * kGroup) &&
              sizeof(Super5) == bytes_of(DType::q5_k, 8 * kGroup) &&
              sizeof(Super6) == bytes_of(DType::q6_k, 8 * kGroup));

// Blocks of a row of n weights.
template <class G>
constexpr i64 blocks_in(i64 n) {
  return ceil_div(n, kParts<G> * kGroup);
}

// A row whose products with blocks are computed: element i is w * scales[i / 32] with a 16-bit integer w in
// [-kTopWord, kTopWord], so it is rounded by at most 1 / 65278 of the largest magnitude of its part. The
// bytes of the words of part g are at parts + 64 g: the words; for q4 the lower bytes of the 32 words, then
// the upper ones, both signed (w = 256 upper + lower). For types with a minimum, sums[g] is the sum of the
// part's elements.
constexpr int kTopWord = 127 * 256 + 127;
struct RowOfWords {
  const std::int8_t* parts;
  const float* scales;
  const float* sums;
};

// Rows of n weights each.
template <class G>
void to_groups(const float* x, G* y, i64 rows, i64 n);  // kMade<G>
template <class G>
void from_groups(const G* x, float* y, i64 rows, i64 n);

}  // namespace redco::kernels
