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
// bf16: computation and storage; q8 and q4: weights of 8 and 4 bits (int8, int4).
//
// q8 and q4 are grouped: 32 consecutive elements of the last dim share a scale, and those of q4 a minimum. A
// group is the unit of storage and of sharding. Every row of the last dim begins a new group, and its last
// group may hold fewer elements. The bytes of a group are those of ggml's Q8_0 and Q4_1
// (kernels/cpu/groups.h).
enum class DType : std::uint8_t { f32, f64, bf16, i32, q8, q4 };

const char* name_of(DType t);
constexpr bool is_grouped(DType t) { return t == DType::q8 || t == DType::q4; }
// Types that parameters are stored in. Ops compute in fp32: an op without code for the type widens it.
constexpr bool is_storage_type(DType t) { return t == DType::bf16 || is_grouped(t); }
// Elements of a group.
constexpr i64 group_of(DType t) { return is_grouped(t) ? 32 : 1; }
// Bytes of an element. 0 if the type is grouped: use bytes_of().
constexpr i64 size_of(DType t) { return t == DType::f64 ? 8 : t == DType::bf16 ? 2 : is_grouped(t) ? 0 : 4; }
// Bytes of n elements in whole groups.
constexpr i64 bytes_of(DType t, i64 n) {
  return t == DType::q8 ? n / 32 * 34 : t == DType::q4 ? n / 32 * 20 : n * size_of(t);
}

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

// The elements of a row-major tensor in memory: rows of the last dim are whole groups.
inline i64 stored_numel(DType t, const Shape& s) {
  if (!is_grouped(t)) return numel(s);
  i64 n = ceil_div(s.back(), group_of(t)) * group_of(t);
  for (std::size_t d = 0; d + 1 < s.size(); ++d) n *= s[d];
  return n;
}

std::string to_string(const Shape& s);  // "(2, 3)"

}  // namespace redco
