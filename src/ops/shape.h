// Ops that move elements: reshape, permute, narrow, concat, broadcast. A Partial stays Partial.
#pragma once

#include "tensor/tensor.h"

namespace redco {

// Reshapes the visible dims; one entry may be -1. A cut is kept on the outermost dim of a merge or split if
// its borders are at whole units of the new dim; otherwise the tensor is redistributed first.
Tensor reshape(const Tensor& x, Shape visible_shape);
// Reshapes to a shape over all dims, the first `hidden` of them hidden: for vjps of broadcasting.
Tensor reshape_all(const Tensor& x, const Shape& shape, int hidden);
// The placement after a reshape of a cut of dim p.dim; false if the cut cannot be kept. Public for tests.
bool reshape_placement(const Shape& from, const Shape& to, const Placement& p, Placement* out);

Tensor permute(const Tensor& x, const std::vector<int>& dims);  // of visible dims, like numpy.transpose
Tensor transpose(const Tensor& x, int a, int b);
// Elements [start, start + length) of a dim.
Tensor narrow(const Tensor& x, int dim, i64 start, i64 length);
// The inverse of narrow: x at `start` of a dim of `size`, zeros elsewhere.
Tensor pad_to(const Tensor& x, int dim, i64 start, i64 size);
Tensor concat(const std::vector<Tensor>& parts, int dim);
// Repeats dims of size 1 to `shape` (all dims). The result is cut like `wish` if x allows it.
Tensor broadcast_to(const Tensor& x, const Shape& shape, const Layout& wish);
Tensor broadcast_to(const Tensor& x, const Shape& visible_shape);
// Converts between f32, f64 and i32. To i32, numbers are cut toward zero, without gradient.
Tensor cast(const Tensor& x, DType to);
// Ids and masks (i32) as numbers of this type.
Tensor to_float(const Tensor& ids, DType to = DType::f32);
// An activation in bf16 as fp32; others are returned unchanged. Composed forms of fused ops compute in fp32.
Tensor to_sum_type(const Tensor& x);

// How many times key/value heads are repeated on the current mesh (kv_repeat in shard/layout.h).
i64 head_repeats(i64 n_head, i64 n_kv);
// Grouped heads: repeats each group of `width` rows of dim 0 f times (f >= 1): [n * width, ...] -> [n * f *
// width, ...]. A Replicated input gives a result cut like `like`, so that each rank creates only its slice,
// if the cut dim exists in w (a bias has no second dim).
Tensor repeat_heads(const Tensor& w, i64 width, i64 f, const Layout& like);
// Its vjp: sums each group of f. [n * f * width, ...] -> [n * width, ...].
Tensor sum_heads(const Tensor& g, i64 width, i64 f);

}  // namespace redco
