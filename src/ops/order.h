// Orders of elements, ids and powers. Composed of simpler ops, so they have any derivative and placement.
#pragma once

#include "tensor/tensor.h"

namespace redco {

// start, start + 1, ..., start + n - 1 as i32 [n].
Tensor arange(i64 n, i64 start = 0);
// 1 at each id and 0 elsewhere: ids [...] to [..., width]. Ids outside [0, width) give rows of zeros. No
// gradient.
Tensor one_hot(const Tensor& ids, i64 width, DType dtype = DType::f32);
// 1 where it holds and 0 elsewhere, without gradient. Two tensors of numbers or two of ids, which broadcast;
// the result of ids is f64.
Tensor less(const Tensor& a, const Tensor& b);
Tensor less_equal(const Tensor& a, const Tensor& b);
Tensor equal(const Tensor& a, const Tensor& b);

// The id of the largest element of the last dim, the first of equal ones: x [..., V] to i32 [...]. No
// gradient. REQUIRES: no NaN, V < 2^24.
Tensor argmax(const Tensor& x);

// Elements by their ids along the last dim: x [..., V], ids i32 [..., K] to [..., K]. In memory, x is
// repeated K times.
Tensor take_along(const Tensor& x, const Tensor& ids);

// Values and their ids [..., K]. The values have a gradient; of equal elements the first comes first.
struct Ordered {
  Tensor values, ids;
};
// The k largest elements of the last dim, the largest first. Takes k passes.
Ordered top_k(const Tensor& x, i64 k);
// All elements of the last dim, [..., V]. In memory, there are V x V numbers for each row.
Ordered sort(const Tensor& x, bool descending = false);

// y[i] = max(x[0], ..., x[i]) along `dim`. Of equal elements the gradient goes to the first.
Tensor cummax(const Tensor& x, int dim);

// -1, 0 or 1; its gradient is zero.
Tensor sign(const Tensor& x);
// x^exponent. For an exponent that is no integer, x < 0 gives NaN. At x = 0 the gradient is 0 unless the
// exponent is an integer below 2.
Tensor pow(const Tensor& x, double exponent);

}  // namespace redco
