// Element types of GGUF files: plain numbers, and blocks of quantized numbers (ggml, ggml-common.h).
#pragma once

#include <optional>
#include <string>

#include "base/types.h"

namespace redco::gguf {

enum class BlockType : std::uint32_t {
  f32 = 0,
  f16 = 1,
  q4_0 = 2,
  q4_1 = 3,
  q5_0 = 6,
  q5_1 = 7,
  q8_0 = 8,
  q4_k = 12,
  q5_k = 13,
  q6_k = 14,
  i8 = 24,
  i16 = 25,
  i32 = 26,
  i64 = 27,
  f64 = 28,
  bf16 = 30,
  mxfp4 = 39
};

struct BlockSize {
  i64 elements, bytes;
};

// nullopt: a type that redco doesn't read.
std::optional<BlockType> block_type(std::uint32_t number);
// "Q4_K", also of types that redco doesn't read; "type 99" if the number has no name.
std::string name_of_type(std::uint32_t number);
inline std::string name_of(BlockType t) { return name_of_type(static_cast<std::uint32_t>(t)); }
BlockSize size_of(BlockType t);

// Dequantizes n blocks: n * size_of(t).elements numbers. REQUIRES: t is a float or a quantized type.
void dequantize(BlockType t, const unsigned char* blocks, i64 n, float* out);

}  // namespace redco::gguf
