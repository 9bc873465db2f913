// Convolutions and pooling of images [channels, height, width]. T is float or double.
//
// A convolution is a product of the weight with patches of the image. Patches aren't copied: in an image with
// its padding around it, the pixels that tap (c, ky, kx) meets at all positions are one run of memory,
// shifted (strides above 1 do copy them). Sums are in the order of taps, for the gradient of the weight in
// that of pixels in vectors, chunk of images by chunk, both given by the shape alone.
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

// Independent convolutions of `images` each: number i takes block a_of[i] of the first operand and b_of[i] of
// the second (a block: `images` images, or one weight), and gives block i.
struct ConvGroups {
  i64 images = 0;
  std::span<const i64> a_of, b_of;
};

// y = x * w + bias: x [images, C, H, W], w [O, C, kh, kw], bias [O] (block bias_of[i]; null: none), y
// [images, O, H', W'].
template <class T>
void conv2d(const ConvShape& s, const ConvGroups& g, const T* x, const T* w, const T* bias,
            std::span<const i64> bias_of, T* y);
// dx [images, C, H, W] from dy and w. workspace: so many elements, uninitialized, as for the next one.
template <class T>
void conv2d_input_gradient(const ConvShape& s, const ConvGroups& g, const T* dy, const T* w, T* dx,
                           T* workspace);
i64 conv2d_input_gradient_workspace(const ConvShape& s, i64 groups);
// dw [O, C, kh, kw], summed over the images, from dy and x.
template <class T>
void conv2d_weight_gradient(const ConvShape& s, const ConvGroups& g, const T* dy, const T* x, T* dw,
                            T* workspace);
i64 conv2d_weight_gradient_workspace(const ConvShape& s, i64 groups, i64 images);

// Windows over planes [height, width]; pixels outside of the image are 0 for a mean (and counted), and never
// the maximum.
struct PoolShape {
  i64 height = 0, width = 0;
  std::array<i64, 2> kernel = {1, 1}, stride = {1, 1}, padding = {0, 0};
  i64 out_height() const { return (height + 2 * padding[0] - kernel[0]) / stride[0] + 1; }
  i64 out_width() const { return (width + 2 * padding[1] - kernel[1]) / stride[1] + 1; }
};
// gate (null: none), of x's shape: pixels count where it is above 0, others are 0. With x as its own gate the
// mean is that of relu(x).
template <class T>
void avg_pool2d(const PoolShape& s, i64 planes, const T* x, const T* gate, T* y);
// Its transpose: each pixel gets its windows' values / their size.
template <class T>
void avg_unpool2d(const PoolShape& s, i64 planes, const T* y, const T* gate, T* x);
// from: the pixel of its plane that is the maximum (the first of equal ones; NaN before all) of each window.
template <class T>
void max_pool2d(const PoolShape& s, i64 planes, const T* x, T* y, i32* from);
// y[window] = x[from[window]], and its transpose, which adds up; planes of `pixels` and `windows`.
template <class T>
void take_windows(i64 planes, i64 pixels, i64 windows, const T* x, const i32* from, T* y);
template <class T>
void put_windows(i64 planes, i64 pixels, i64 windows, const T* y, const i32* from, T* x);

}  // namespace redco::kernels
