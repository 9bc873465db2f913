// Convolution and pooling of images [channels, height, width]. T is float or double.
//
// A convolution is the product of the weight with the im2col matrix of the image, whose row (c, ky, kx) holds
// the pixels that this kernel element reads at all positions. The matrix is implicit: in an image surrounded
// by its padding each row is one shifted run of memory (only strides above 1 need a copy). Sums are in the
// order of kernel elements; for the weight's gradient, in the order of pixel vectors, one chunk of images
// after the other. The shape alone determines these orders.
#pragma once

#include <array>
#include <span>

#include "base/types.h"

namespace redco::kernels {

struct ConvShape {
  i64 channels = 0, height = 0, width = 0, outputs = 0;
  i64 kernel_height = 0, kernel_width = 0;
  std::array<i64, 2> stride = {1, 1}, padding = {0, 0};  // of height and width
  i64 out_height() const { return (height + 2 * padding[0] - kernel_height) / stride[0] + 1; }
  i64 out_width() const { return (width + 2 * padding[1] - kernel_width) / stride[1] + 1; }
  i64 image() const { return channels * height * width; }
  i64 out_image() const { return outputs * out_height() * out_width(); }
  i64 taps() const { return channels * kernel_height * kernel_width; }
};

// Independent convolutions of `images` images each. Convolution i reads block a_of[i] of the first operand
// and b_of[i] of the second (a block is `images` images or one weight) and writes block i.
struct ConvGroups {
  i64 images = 0;
  std::span<const i64> a_of, b_of;
};

// y = x * w + bias: x [images, C, H, W], w [O, C, kh, kw], bias [O] (block bias_of[i]; null: none), y
// [images, O, H', W'].
template <class T>
void conv2d(const ConvShape& s, const ConvGroups& g, const T* x, const T* w, const T* bias,
            std::span<const i64> bias_of, T* y);
// dx [images, C, H, W] from dy and w. workspace: NAME_workspace() elements, uninitialized, here and below.
template <class T>
void conv2d_input_gradient(const ConvShape& s, const ConvGroups& g, const T* dy, const T* w, T* dx,
                           T* workspace);
i64 conv2d_input_gradient_workspace(const ConvShape& s, i64 groups);
// dw [O, C, kh, kw], summed over the images, from dy and x.
template <class T>
void conv2d_weight_gradient(const ConvShape& s, const ConvGroups& g, const T* dy, const T* x, T* dw,
                            T* workspace);
i64 conv2d_weight_gradient_workspace(const ConvShape& s, i64 groups, i64 images);

// Windows over planes [height, width]. Pixels outside the image count as 0 in a mean and are never the
// maximum.
struct PoolShape {
  i64 height = 0, width = 0;
  std::array<i64, 2> kernel = {1, 1}, stride = {1, 1}, padding = {0, 0};
  i64 out_height() const { return (height + 2 * padding[0] - kernel[0]) / stride[0] + 1; }
  i64 out_width() const { return (width + 2 * padding[1] - kernel[1]) / stride[1] + 1; }
};
// gate: null, or of x's shape: pixels whose gate is not above 0 count as 0. With x as its own gate this is
// the mean of relu(x).
template <class T>
void avg_pool2d(const PoolShape& s, i64 planes, const T* x, const T* gate, T* y);
// Its transpose: each pixel gets the sum of its windows' values, divided by the window size.
template <class T>
void avg_unpool2d(const PoolShape& s, i64 planes, const T* y, const T* gate, T* x);
// from: for each window, the index in its plane of the maximum pixel (the first of equal ones; NaN wins).
template <class T>
void max_pool2d(const PoolShape& s, i64 planes, const T* x, T* y, i32* from);
// y[window] = x[from[window]], and its transpose, which adds; planes have `pixels` and `windows` elements.
template <class T>
void take_windows(i64 planes, i64 pixels, i64 windows, const T* x, const i32* from, T* y);
template <class T>
void put_windows(i64 planes, i64 pixels, i64 windows, const T* y, const i32* from, T* x);

}  // namespace redco::kernels
