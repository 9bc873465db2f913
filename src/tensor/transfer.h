// Copies between the local block of a tensor and the host's memory. They wait for all work that was submitted
// before. T must be the type of the dtype. On a planned rank they do nothing.
#pragma once

#include <bit>
#include <span>
#include <vector>

#include "base/error.h"
#include "tensor/tensor.h"

namespace redco {

template <class T>
constexpr DType dtype_of() {
  if constexpr (std::is_same_v<T, double>) return DType::f64;
  if constexpr (std::is_same_v<T, float>) return DType::f32;
  if constexpr (std::is_same_v<T, i32>) return DType::i32;
  if constexpr (std::is_same_v<T, bf16>) return DType::bf16;
}

// The local elements [first, first + to.size()), row-major. Activations in bf16 are read as float, too.
template <class T>
void copy_to_host(const Tensor& from, i64 first, std::span<T> to) {
  const i64 n = static_cast<i64>(to.size());
  if constexpr (std::is_same_v<T, float>)
    if (from.dtype() == DType::bf16) {
      std::vector<bf16> stored(to.size());
      copy_to_host<bf16>(from, first, stored);
      for (i64 i = 0; i < n; ++i) to[i] = std::bit_cast<float>(static_cast<u32>(stored[i].bits) << 16);
      return;
    }
  REDCO_CHECK(from.dtype() == dtype_of<T>() && first >= 0 && first + n <= from.local_numel(),
              "elements [{}, {}) of {}", first, first + n, describe(from));
  Context::current().queue().read(from.view().data.plus(first * static_cast<i64>(sizeof(T))), to.data(),
                                  n * static_cast<i64>(sizeof(T)));
}
template <class T>
void copy_from_host(std::span<const T> from, const Tensor& to, i64 first = 0) {
  const i64 n = static_cast<i64>(from.size());
  REDCO_CHECK(to.dtype() == dtype_of<T>() && first >= 0 && first + n <= to.local_numel(),
              "elements [{}, {}) of {}", first, first + n, describe(to));
  Context::current().queue().write(from.data(), to.view().data.plus(first * static_cast<i64>(sizeof(T))),
                                   n * static_cast<i64>(sizeof(T)));
}

// All local elements; on a planned rank, none.
template <class T>
std::vector<T> host_copy(const Tensor& t) {
  std::vector<T> out(t.is_meta() ? 0 : static_cast<std::size_t>(t.local_numel()));
  copy_to_host<T>(t, 0, out);
  return out;
}

}  // namespace redco
