// Elements of the stored matrices of products (products.h).
#pragma once

#include <algorithm>

#include "kernels/cpu/groups.h"
#include "kernels/cpu/isa/ranges.h"
#include "kernels/cpu/products/products.h"
#include "kernels/isa.h"

namespace redco::kernels {

// Where element (row, column) of the stored matrix lies; blocks of columns are not cut.
inline const std::byte* at(const Matrix& x, i64 row, i64 column) {
  return x.data + row * x.row + bytes_of(x.type, column);
}
template <class T>
const T* elements(const Matrix& x, i64 row, i64 column) {
  return reinterpret_cast<const T*>(at(x, row, column));
}
template <class T>
T* y_at(const Product& p, i64 row, i64 column) {
  return static_cast<T*>(p.y) + row * p.n + column;
}

inline Matrix transpose_of(Matrix x) {
  x.trans = !x.trans;
  return x;
}
// The product y^T = b^T a^T, without bias and without a place for it: for sums.
inline Product transpose_of(const Product& p) {
  Product out{.m = p.n, .n = p.m};
  for (const Term& t : p.terms) out.terms.push_back({transpose_of(t.b), transpose_of(t.a), t.k});
  return out;
}

// n stored elements of a row in fp32, from a column on that is a multiple of kGroup if the type is grouped.
inline void widen(const Matrix& x, i64 row, i64 column, i64 n, float* to) {
  if (x.type == DType::f32) {
    std::copy_n(elements<float>(x, row, column), n, to);
  } else if (x.type == DType::bf16) {
    REDCO_ISA_CALL(from_bf16(elements<u16>(x, row, column), to, n));
  } else {
    visit_groups(x.type, [&](auto zero) {
      using G = decltype(zero);
      REDCO_ISA_CALL(from_groups(elements<G>(x, row, 0), column, to, n));
    });
  }
}

}  // namespace redco::kernels
