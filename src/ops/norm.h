// Layer norm (Ba et al. 2016) and RMS norm (Zhang & Sennrich 2019) over the last dim; group norm.
#pragma once

#include "tensor/tensor.h"

namespace redco {

// The type of a norm's result: the one that the context computes in, for the product that reads it; or that
// of x, where the result is the residual stream itself.
enum class NormResult : std::uint8_t { computed, stream };

// w and b have the shape [C]; each may be undefined.
Tensor layer_norm(const Tensor& x, const Tensor& w, const Tensor& b, double eps,
                  NormResult result = NormResult::computed);
// y = w * x / sqrt(mean(x^2) + eps). If the last dim of x is cut, only a number per row is reduced.
Tensor rms_norm(const Tensor& x, const Tensor& w, double eps);
// Group norm (Wu & He 2018) of x [B, C, ...]: every group of C / groups channels of an example has mean 0 and
// variance 1. w and b have the shape [C]; each may be undefined. Composed of layer_norm.
Tensor group_norm(const Tensor& x, i64 groups, const Tensor& w, const Tensor& b, double eps);
// layer_norm and rms_norm composed of simpler ops: for second derivatives, batched weights and tests.
Tensor layer_norm_composed(const Tensor& x, const Tensor& w, const Tensor& b, double eps);
Tensor rms_norm_composed(const Tensor& x, const Tensor& w, double eps);

}  // namespace redco
