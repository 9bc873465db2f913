// Groups of 32 weights of 8 or 4 bits with one scale in fp16: DType::q8 and q4. The bytes are those of ggml's
// block_q8_0 and block_q4_1 (ggml-common.h), the formats Q8_0 and Q4_1 of GGUF files: 8.5 and 5 bits per
// weight.
//
// q8: value i is scale * values[i], values in [-127, 127]; scale = largest magnitude / 127.
// q4: value i < 16 is scale * (values[i] & 15) + minimum, value i + 16 is scale * (values[i] >> 4) + minimum.
// Scale and minimum have the least sum of weighted squared errors among several candidates
// (isa/group_fit.cpp). Weights that 4 bits with a scale and their least or greatest value as minimum hold
// exactly are kept exactly.
// Scale and minimum are rounded first, and the values are the nearest ones. Values times scales are exact in
// fp32. A group with an element that is not finite, or that fp16 cannot hold (q4), becomes NaN. In groups
// whose magnitudes are all below about 1e-5, scales are subnormal in fp16, and precision is lost.
//
// A row of n weights is ceil(n / 32) groups; what a short last group lacks has the value 0 (q8) or any finite
// value (q4).
#pragma once

#include "base/types.h"

namespace redco::kernels {

constexpr i64 kGroup = group_of(DType::q8);
static_assert(group_of(DType::q4) == kGroup);
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
static_assert(sizeof(Group8) == bytes_of(DType::q8, kGroup) && sizeof(Group4) == bytes_of(DType::q4, kGroup));

// A row whose products with groups are computed: element i is w * scales[i / 32] with a 16-bit integer w in
// [-kTopWord, kTopWord], so it is rounded by at most 1 / 65278 of the largest magnitude of its group. The
// bytes of the words of group g are at parts + 64 g: for q8 the words; for q4 the lower bytes of the 32
// words, then the upper ones, both signed (w = 256 upper + lower), and sums[g] is the sum of the group's
// elements.
constexpr int kTopWord = 127 * 256 + 127;
struct RowOfWords {
  const std::int8_t* parts;
  const float* scales;
  const float* sums;
};

// Calls f with a group of the grouped type, or with the element or group of the storage type.
template <class F>
decltype(auto) visit_groups(DType t, F&& f) {
  if (t == DType::q4) return f(Group4{});
  return f(Group8{});
}
template <class F>
decltype(auto) visit_stored(DType t, F&& f) {
  if (t == DType::bf16) return f(bf16{});
  return visit_groups(t, f);
}

// The length of a row of k weights in memory.
template <class S>
constexpr i64 stored_row(i64 k) {
  return std::is_same_v<S, Group8> || std::is_same_v<S, Group4> ? groups_in(k) : k;
}

// Rows of n weights each, G is Group8 or Group4.
template <class G>
void to_groups(const float* x, G* y, i64 rows, i64 n);
template <class G>
void from_groups(const G* x, float* y, i64 rows, i64 n);

}  // namespace redco::kernels
