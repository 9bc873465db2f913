// Small products of bf16 on the calling thread, for the blocks of attention.
#pragma once

#include "kernels/cpu/products/path.h"

namespace redco::kernels {

// A matrix whose rows are `ld` elements apart, or its transpose.
template <class T>
struct Operand {
  const T* data;
  i64 ld;
  bool trans = false;
};

// y[m, n] = a[m, k] b[k, n] of bf16 with sums in fp32, on the calling thread: for blocks of attention. An a
// of fp32 is rounded to bf16. b is packed before, into size_of_b() floats; room: size_of_a() floats. add: the
// product is added to y. REQUIRES: Unit::dot, k <= kDeepest.
struct DotProduct {
  static constexpr i64 kDeepest = 1024;
  i64 n, k;
  i64 size_of_b() const;
  i64 size_of_a(i64 m) const;
  void pack(const Operand<bf16>& b, float* to) const;
  template <class T>
  void multiply(i64 m, const Operand<T>& a, const float* b, bool add, float* y, i64 ldy, float* room) const;
};

}  // namespace redco::kernels
