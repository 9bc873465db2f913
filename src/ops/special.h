// Functions of each element that are exact where a composition of exp and log is not, and rounding. Composed
// of simpler ops.
#pragma once

#include "tensor/tensor.h"

namespace redco {

Tensor erf(const Tensor& x);    // 2 / sqrt(pi) times the integral of exp(-t^2) from 0 to x
Tensor log1p(const Tensor& x);  // log(1 + x), exact for small x
Tensor expm1(const Tensor& x);  // exp(x) - 1, exact for small x

// Whole numbers: the nearest (even of two), and the largest that is not above x. No gradient.
Tensor round(const Tensor& x);
Tensor floor(const Tensor& x);

}  // namespace redco
