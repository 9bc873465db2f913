// Ops on values and their order: powers, signs, comparisons, the largest elements, running maxima.
#pragma once

#include "tensor/tensor.h"

namespace redco {

// start, start + 1, ...: [n] i32.
Tensor arange(i64 n, i64 start = 0);
// [..., width]: 1 at the id, 0 elsewhere; zeros for an id outside of [0, width). ids [...] i32.
Tensor one_hot(const Tensor& ids, i64 width, DType dtype = DType::f32);

// x^exponent. Whole exponents of at most 64 are products, for any x; for others x must be above 0.
Tensor pow(const Tensor& x, double exponent);
// -1, 0 or 1, without gradient.
Tensor sign(const Tensor& x);

// 1 where it holds, else 0, without gradient. Two tensors of numbers, which broadcast; or two of ids (i32),
// whose result is f64.
Tensor less(const Tensor& a, const Tensor& b);
Tensor less_equal(const Tensor& a, const Tensor& b);
Tensor equal(const Tensor& a, const Tensor& b);

// The index of the largest element of the last dim, the first of equal ones: [...] i32. x has no NaN.
Tensor argmax(const Tensor& x);
// The k largest elements of the last dim, the largest first, and their indices (i32): [..., k] each. The
// values have the gradient of the elements. k passes through x, which has no NaN.
struct TopK {
  Tensor values, ids;
};
TopK top_k(const Tensor& x, i64 k);
// y[i] = max(x[0], ..., x[i]) along `dim`.
Tensor cummax(const Tensor& x, int dim);

}  // namespace redco
