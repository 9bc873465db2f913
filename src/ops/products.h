// Products along a dim. Composed of simpler ops.
#pragma once

#include "tensor/tensor.h"

namespace redco {

// Of all elements (without the dim), and of those up to each. As trees of products, so
// gradients are right where elements are 0 too. A sharded `dim` is gathered.
Tensor prod(const Tensor& x, int dim);
Tensor cumprod(const Tensor& x, int dim);

}  // namespace redco
