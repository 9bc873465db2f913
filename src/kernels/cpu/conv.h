// Convolution and pooling of images [channels, height, width]. T is float or double.
//
// A convolution is the product of the weight with the im2col matrix of the image, whose row (c, ky, kx) holds
// the pixels that this kernel element reads at all positions. The matrix is implicit: in an image surrounded
// by its padding each row is one shifted run of memory (only strides above 1 need a copy). Sums are in the
// order of kernel elements; for the weight's gradient, in the order of pixel vectors, one chunk of images
// after the other. The shape alone determines these orders.
#pragma once

#include <span>

#include "kernels/arguments.h"

namespace redco::kernels {

// Independent convolutions of `images` images each. Convolution i reads block a_of[i] of the first operand
// and b_of[i] of the second (a block is `images` images or one weight) and writes block i.
struct ConvGroups {
  i64 images = 0;
  std::span<const i64> a_of, b_of;
};

// y = x * w + bias: x [images, C, H, W], w [O, C, kh, kw], bias [O] (block bias_of[i]; null: none), y
// [images, O, H', W']. workspace: NAME_workspace() elements, uninitialized, here and below; it grows with the
// threads.
template <class T>
void conv2d(const ConvShape& s, const ConvGroups& g, const T* x, const T* w, const T* bias,
            std::span<const i64> bias_of, T* y, std::span<T> workspace);
i64 conv2d_workspace(const ConvShape& s, i64 groups, i64 images);
// dx [images, C, H, W] from dy and w.
template <class T>
void conv2d_input_gradient(const ConvShape& s, const ConvGroups& g, const T* dy, const T* w, T* dx,
                           std::span<T> workspace);
i64 conv2d_input_gradient_workspace(const ConvShape& s, i64 groups, i64 images);
// dw [O, C, kh, kw], summed over the images, from dy and x.
template <class T>
void conv2d_weight_gradient(const ConvShape& s, const ConvGroups& g, const T* dy, const T* x, T* dw,
                            std::span<T> workspace);
i64 conv2d_weight_gradient_workspace(const ConvShape& s, i64 groups, i64 images);

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
