// Types that every folder uses: sizes, element types, shapes.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <type_traits>
#include <vector>

#include "base/small_vector.h"

namespace redco {

using i64 = std::int64_t;
using u64 = std::uint64_t;
using i32 = std::int32_t;
using u32 = std::uint32_t;

// Element types of tensors. f32: computation and training; f64: numerical checks; i32: ids, labels and masks;
// bf16: computation and storage; the others: weights in blocks of quantized numbers.
//
// q8 and q4 are int8 and int4: what redco quantizes weights to. The types from q4_0 on are only read from
// GGUF files. A block is `group` consecutive elements of the last dim, with a scale of its own. It is the
// unit of storage and of sharding. Every row of the last dim begins a new block; the last block of q8 and q4
// may hold fewer elements. The bytes of a block are those of ggml's types: Q8_0 (q8), Q4_1 (q4) and those of
// the same name (kernels/cpu/groups.h).
enum class DType : std::uint8_t { f32, f64, bf16, i32, q8, q4, q4_0, q5_0, q5_1, q4_k, q5_k, q6_k };

const char* name_of(DType t);
constexpr bool is_grouped(DType t) { return t >= DType::q8; }
// Types that parameters are stored in. Ops compute in fp32: an op without code for the type widens it.
constexpr bool is_storage_type(DType t) { return t == DType::bf16 || is_grouped(t); }

// Elements and bytes of a block; of the other types, of an element.
struct BlockOf {
  i64 elements, bytes;
};
constexpr BlockOf block_of(DType t) {
  switch (t) {
    case DType::f32:
    case DType::i32:
      return {1, 4};
    case DType::f64:
      return {1, 8};
    case DType::bf16:
      return {1, 2};
    case DType::q8:
      return {32, 34};
    case DType::q4:
      return {32, 20};
    case DType::q4_0:
      return {32, 18};
    case DType::q5_0:
      return {32, 22};
    case DType::q5_1:
      return {32, 24};
    case DType::q4_k:
      return {256, 144};
    case DType::q5_k:
      return {256, 176};
    case DType::q6_k:
      return {256, 210};
  }
  return {1, 0};
}
constexpr i64 group_of(DType t) { return block_of(t).elements; }
// Bytes of an element. 0 if the type is grouped: use bytes_of().
constexpr i64 size_of(DType t) { return is_grouped(t) ? 0 : block_of(t).bytes; }
// Bytes of n elements in whole blocks.
constexpr i64 bytes_of(DType t, i64 n) { return n / block_of(t).elements * block_of(t).bytes; }

// bfloat16: the upper half of an fp32. Arithmetic is done in fp32.
struct bf16 {
  std::uint16_t bits;
};

// Dimensions, outermost first.
using Shape = SmallVector<i64, 6>;
// Steps between neighbours in each dim, in elements.
using Strides = SmallVector<i64, 6>;

inline i64 numel(const Shape& s) {
  i64 n = 1;
  for (i64 d : s) n *= d;
  return n;
}

// a / b, rounded up. REQUIRES: a >= 0, b > 0.
template <class T>
constexpr T ceil_div(T a, std::type_identity_t<T> b) {
  return a / b + (a % b != 0);
}

// The elements of a row-major tensor in memory: rows of the last dim are whole blocks.
inline i64 stored_numel(DType t, const Shape& s) {
  if (!is_grouped(t)) return numel(s);
  i64 n = ceil_div(s.back(), group_of(t)) * group_of(t);
  for (std::size_t d = 0; d + 1 < s.size(); ++d) n *= s[d];
  return n;
}

std::string to_string(const Shape& s);  // "(2, 3)"

}  // namespace redco
