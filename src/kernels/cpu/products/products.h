// Matrix products with operands of several types and several terms, many at a time: the products of linear
// layers and of their gradients. path.h chooses how each is computed.
#pragma once

#include <cstddef>
#include <span>

#include "base/types.h"

namespace redco::kernels {

// A matrix in memory: rows that are `row` bytes apart. Types: f32, bf16 or quantized.
struct Matrix {
  const std::byte* data = nullptr;
  DType type = DType::f32;
  i64 row = 0;
  bool trans = false;  // it is stored as the transpose
};

// y[m, n] = the sum over terms of a[m, k] b[k, n], plus bias[n] (null: none). y is f32 or bf16, row-major.
struct Term {
  Matrix a, b;
  i64 k = 0;
};
struct Product {
  i64 m = 0, n = 0;
  SmallVector<Term, 3> terms;
  const float* bias = nullptr;
  void* y = nullptr;
  DType type = DType::f32;
};

// Sums are fp32. bf16: operands may be rounded to bf16, where this CPU multiplies pairs of bf16
// (bf16_tiles.h). Otherwise operands that are not f32 are widened, a tile at a time. The workspace is
// uninitialized. The order of sums depends on shapes and types alone: tiles, which depend on the number of
// threads, do not change it.
void products(std::span<const Product> all, bool bf16, std::span<float> workspace);
i64 products_workspace(std::span<const Product> all, bool bf16);
// Enough for one product of any number of rows of f32 with a stored matrix b of this type: with b[n, k]^T if
// `trans`, else with b[k, n].
i64 stored_product_workspace(i64 n, i64 k, DType b, bool trans, bool bf16);

}  // namespace redco::kernels
