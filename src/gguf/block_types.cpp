#include "gguf/block_types.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstring>

#include "base/error.h"
#include "base/half.h"

namespace redco::gguf {

namespace {

struct TypeRow {
  std::uint32_t number;
  const char* name;
  BlockSize size;  // {0, 0}: not read
};
// The types of ggml.h. Blocks of 32 have one scale; superblocks of 256 have scales of scales.
constexpr std::array<TypeRow, 31> kTypes = {{
    {0, "F32", {1, 4}},       {1, "F16", {1, 2}},     {2, "Q4_0", {32, 18}},    {3, "Q4_1", {32, 20}},
    {6, "Q5_0", {32, 22}},    {7, "Q5_1", {32, 24}},  {8, "Q8_0", {32, 34}},    {9, "Q8_1", {0, 0}},
    {10, "Q2_K", {0, 0}},     {11, "Q3_K", {0, 0}},   {12, "Q4_K", {256, 144}}, {13, "Q5_K", {256, 176}},
    {14, "Q6_K", {256, 210}}, {15, "Q8_K", {0, 0}},   {16, "IQ2_XXS", {0, 0}},  {17, "IQ2_XS", {0, 0}},
    {18, "IQ3_XXS", {0, 0}},  {19, "IQ1_S", {0, 0}},  {20, "IQ4_NL", {0, 0}},   {21, "IQ3_S", {0, 0}},
    {22, "IQ2_S", {0, 0}},    {23, "IQ4_XS", {0, 0}}, {24, "I8", {1, 1}},       {25, "I16", {1, 2}},
    {26, "I32", {1, 4}},      {27, "I64", {1, 8}},    {28, "F64", {1, 8}},      {29, "IQ1_M", {0, 0}},
    {30, "BF16", {1, 2}},     {34, "TQ1_0", {0, 0}},  {39, "MXFP4", {32, 17}},
}};

const TypeRow* row_of(std::uint32_t number) {
  for (const TypeRow& r : kTypes)
    if (r.number == number) return &r;
  return nullptr;
}

std::uint16_t half_bits(const unsigned char* p) { return static_cast<std::uint16_t>(p[0] | p[1] << 8); }

float half_at(const unsigned char* p) { return float_of_half(half_bits(p)); }

template <class T>
T plain(const unsigned char* p) {
  T out;
  std::memcpy(&out, p, sizeof out);
  return out;
}

float bf16_at(const unsigned char* p) {
  const std::uint32_t bits = static_cast<std::uint32_t>(half_bits(p)) << 16;
  float out;
  std::memcpy(&out, &bits, 4);
  return out;
}

// Nibble j of 16 bytes: element j in the low halves, j + 16 in the high ones.
int nibble(const unsigned char* q, int j) { return j < 16 ? q[j] & 15 : q[j - 16] >> 4; }

void block_32(BlockType t, const unsigned char* b, float* y) {
  const float d = half_at(b);
  if (t == BlockType::q8_0) {
    for (int j = 0; j < 32; ++j) y[j] = d * static_cast<float>(static_cast<signed char>(b[2 + j]));
    return;
  }
  const bool has_minimum = t == BlockType::q4_1 || t == BlockType::q5_1;
  const bool has_fifth_bit = t == BlockType::q5_0 || t == BlockType::q5_1;
  const float minimum = has_minimum ? half_at(b + 2) : 0;
  const unsigned char* p = b + (has_minimum ? 4 : 2);
  const std::uint32_t high = has_fifth_bit ? plain<std::uint32_t>(p) : 0;
  if (has_fifth_bit) p += 4;
  const int zero = has_minimum ? 0 : has_fifth_bit ? 16 : 8;
  for (int j = 0; j < 32; ++j) {
    const int q = nibble(p, j) | static_cast<int>(high >> j & 1) << 4;
    y[j] = d * static_cast<float>(q - zero) + minimum;
  }
}

// Scale and minimum j of the eight of a superblock of Q4_K or Q5_K: 6 bits each, in 12 bytes.
void scale_and_minimum(const unsigned char* s, int j, int& scale, int& minimum) {
  if (j < 4) {
    scale = s[j] & 63;
    minimum = s[j + 4] & 63;
  } else {
    scale = (s[j + 4] & 15) | (s[j - 4] >> 6) << 4;
    minimum = s[j + 4] >> 4 | (s[j] >> 6) << 4;
  }
}

// half d, dmin; 12 bytes of scales; Q5_K: 32 bytes of fifth bits; 128 bytes of nibbles. Each group of 64
// elements has its first 32 in low nibbles and its last 32 in high ones.
void block_k45(BlockType t, const unsigned char* b, float* y) {
  const float d = half_at(b), dmin = half_at(b + 2);
  const unsigned char* scales = b + 4;
  const unsigned char* high = t == BlockType::q5_k ? b + 16 : nullptr;
  const unsigned char* q = b + (high ? 48 : 16);
  for (int j = 0; j < 8; ++j) {
    int scale, minimum;
    scale_and_minimum(scales, j, scale, minimum);
    const float step = d * static_cast<float>(scale), low = dmin * static_cast<float>(minimum);
    const unsigned char* nibbles = q + 32 * (j / 2);
    for (int i = 0; i < 32; ++i) {
      int v = j % 2 == 0 ? nibbles[i] & 15 : nibbles[i] >> 4;
      if (high) v |= (high[i] >> j & 1) << 4;
      y[32 * j + i] = step * static_cast<float>(v) - low;
    }
  }
}

// 128 bytes of low nibbles, 64 of upper bit pairs, 16 signed scales, half d. Each half of 128 elements has
// four runs of 32: low nibbles of 32 bytes, of the next 32, then the high nibbles of both.
void block_k6(const unsigned char* b, float* y) {
  const float d = half_at(b + 208);
  for (int half = 0; half < 2; ++half) {
    const unsigned char* low = b + 64 * half;
    const unsigned char* high = b + 128 + 32 * half;
    const unsigned char* scales = b + 192 + 8 * half;
    for (int run = 0; run < 4; ++run)
      for (int i = 0; i < 32; ++i) {
        const unsigned char byte = low[i + 32 * (run % 2)];
        const int q = ((run < 2 ? byte & 15 : byte >> 4) | (high[i] >> 2 * run & 3) << 4) - 32;
        const auto scale = static_cast<signed char>(scales[2 * run + i / 16]);
        y[128 * half + 32 * run + i] = d * static_cast<float>(scale) * static_cast<float>(q);
      }
  }
}

// The exponent of a power of two, plus 127, then nibbles of FP4 (E2M1).
void block_mxfp4(const unsigned char* b, float* y) {
  constexpr float kFp4[16] = {0.F,  .5F,  1.F,  1.5F,  2.F,  3.F,  4.F,  6.F,
                              -0.F, -.5F, -1.F, -1.5F, -2.F, -3.F, -4.F, -6.F};
  for (int j = 0; j < 32; ++j)
    y[j] = static_cast<float>(std::ldexp(static_cast<double>(kFp4[nibble(b + 1, j)]), int{b[0]} - 127));
}

void one_block(BlockType t, const unsigned char* b, float* y) {
  switch (t) {
    case BlockType::f32:
      *y = plain<float>(b);
      return;
    case BlockType::f64:
      *y = static_cast<float>(plain<double>(b));
      return;
    case BlockType::f16:
      *y = half_at(b);
      return;
    case BlockType::bf16:
      *y = bf16_at(b);
      return;
    case BlockType::q4_k:
    case BlockType::q5_k:
      block_k45(t, b, y);
      return;
    case BlockType::q6_k:
      block_k6(b, y);
      return;
    case BlockType::q4_0:
    case BlockType::q4_1:
    case BlockType::q5_0:
    case BlockType::q5_1:
    case BlockType::q8_0:
      block_32(t, b, y);
      return;
    case BlockType::mxfp4:
      block_mxfp4(b, y);
      return;
    case BlockType::i8:
    case BlockType::i16:
    case BlockType::i32:
    case BlockType::i64:
      break;
  }
  REDCO_CHECK(false, "integers are not dequantized");
}

}  // namespace

std::optional<BlockType> block_type(std::uint32_t number) {
  const TypeRow* r = row_of(number);
  if (!r || r->size.elements == 0) return std::nullopt;
  return static_cast<BlockType>(number);
}

std::string name_of_type(std::uint32_t number) {
  const TypeRow* r = row_of(number);
  return r ? r->name : fmt::format("type {}", number);
}

BlockSize size_of(BlockType t) { return row_of(static_cast<std::uint32_t>(t))->size; }

void dequantize(BlockType t, const unsigned char* blocks, i64 n, float* out) {
  const BlockSize size = size_of(t);
  for (i64 i = 0; i < n; ++i) one_block(t, blocks + i * size.bytes, out + i * size.elements);
}

}  // namespace redco::gguf
