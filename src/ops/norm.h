// Layer norm (Ba et al. 2016) and RMS norm (Zhang & Sennrich 2019) over the last dim.
#pragma once

#include "tensor/tensor.h"

namespace redco {

// w and b have the shape [C]; each may be undefined.
Tensor layer_norm(const Tensor& x, const Tensor& w, const Tensor& b, double eps);
// y = w * x / sqrt(mean(x^2) + eps)
Tensor rms_norm(const Tensor& x, const Tensor& w, double eps);
// The same, composed of simpler ops: for second derivatives, batched weights and tests.
Tensor layer_norm_composed(const Tensor& x, const Tensor& w, const Tensor& b, double eps);
Tensor rms_norm_composed(const Tensor& x, const Tensor& w, double eps);

}  // namespace redco
