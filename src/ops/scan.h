// Sums and products along a dim.
#pragma once

#include "tensor/tensor.h"

namespace redco {

// y[i] = x[0] + ... + x[i] along `dim`; reverse: x[i] + ... + x[n - 1]. Added as a tree, in fp32 or better.
Tensor cumsum(const Tensor& x, int dim, bool reverse = false);

// Products along `dim`: of all elements (without the dim), and of those up to each. As trees of products, so
// gradients are right where elements are 0 too. A sharded `dim` is gathered.
Tensor prod(const Tensor& x, int dim);
Tensor cumprod(const Tensor& x, int dim);

}  // namespace redco
