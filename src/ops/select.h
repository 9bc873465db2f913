// Selections by value, composed of simpler ops.
#pragma once

#include "tensor/tensor.h"

namespace redco {

// a where the condition is not 0, else b; the three broadcast. a and b are both floating, or both i32 (ids of
// tokens). The condition is i32 (a mask) or floating, and has no gradient. What is not selected has no
// effect, even if it is infinite or NaN.
Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b);
// x limited to [low, high], which may be infinite. The gradient is zero outside.
Tensor clamp(const Tensor& x, double low, double high);

}  // namespace redco
