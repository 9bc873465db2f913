// Sums along a dim up to each element.
#pragma once

#include "tensor/tensor.h"

namespace redco {

// y[i] = x[0] + ... + x[i] along `dim`; reverse: x[i] + ... + x[n - 1]. Added as a tree, in fp32 or better.
Tensor cumsum(const Tensor& x, int dim, bool reverse = false);

}  // namespace redco
