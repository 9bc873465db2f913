// Convolution, pooling and upsampling of images, differentiable to any order.
#pragma once

#include <array>

#include "tensor/tensor.h"

namespace redco {

struct Conv2dOptions {
  // Of height and width; padding adds zeros on both sides.
  std::array<i64, 2> stride = {1, 1}, padding = {0, 0};
};

// y[..., B, O, H', W'] = x[..., B, C, H, W] * w[..., O, C, kh, kw] + bias[..., O], a cross-correlation, with
// H' = (H + 2 padding - kh) / stride + 1. Leading dims of the three broadcast (per-task weights); images of a
// shared weight may have any number of leading dims. bias may be undefined. A shared weight is stationary: if
// cut along O or C, it is not moved. Computed in the operands' type; Context::compute_dtype is ignored.
Tensor conv2d(const Tensor& x, const Tensor& w, const Tensor& bias = {}, const Conv2dOptions& o = {});
// The transposes: dx [..., B, C, height, width] for g [..., B, O, H', W'], and dw [..., O, C, kh, kw] summed
// over B.
Tensor conv2d_input_gradient(const Tensor& g, const Tensor& w, i64 height, i64 width,
                             const Conv2dOptions& o = {});
Tensor conv2d_weight_gradient(const Tensor& g, const Tensor& x, i64 kernel_height, i64 kernel_width,
                              const Conv2dOptions& o = {});

struct Pool2dOptions {
  std::array<i64, 2> kernel = {2, 2}, stride = {2, 2}, padding = {0, 0};
};
// Means and maxima over windows of the last two dims. Windows that extend past the end are omitted. A mean
// counts padding as zeros; a maximum ignores it, and the first of several equal pixels gets the gradient.
Tensor avg_pool2d(const Tensor& x, const Pool2dOptions& o = {});
Tensor relu_avg_pool2d(const Tensor& x, const Pool2dOptions& o = {});  // of relu(x), in one pass
Tensor max_pool2d(const Tensor& x, const Pool2dOptions& o = {});
// Nearest-neighbour upsampling by whole factors: pixel (i, j) of the result is pixel (i / rows, j / columns)
// of x [..., H, W]. Composed of simpler ops.
Tensor upsample(const Tensor& x, i64 rows, i64 columns);

}  // namespace redco
