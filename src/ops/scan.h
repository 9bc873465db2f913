// Sums and recurrences along a dim up to each element.
#pragma once

#include "tensor/tensor.h"

namespace redco {

// y[i] = x[0] + ... + x[i] along `dim`; reverse: x[i] + ... + x[n - 1]. Added as a tree, in fp32 or better.
Tensor cumsum(const Tensor& x, int dim, bool reverse = false);

// h[i] = a[i] h[i - 1] + b[i] along `dim`, with h[-1] = 0; reverse: h[i] = a[i] h[i + 1] + b[i], with h[n] =
// 0. a and b have one shape. Element by element, so time grows with n.
Tensor linear_scan(const Tensor& a, const Tensor& b, int dim, bool reverse = false);

}  // namespace redco
