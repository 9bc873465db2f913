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
// bf16: computation and storage.
enum class DType : std::uint8_t { f32, f64, bf16, i32 };

constexpr i64 size_of(DType t) { return t == DType::f64 ? 8 : t == DType::bf16 ? 2 : 4; }
const char* name_of(DType t);

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

std::string to_string(const Shape& s);  // "(2, 3)"

}  // namespace redco
