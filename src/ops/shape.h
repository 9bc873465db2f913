// Ops that move elements: reshape, permute, narrow, concat, broadcast. A Partial stays Partial.
#pragma once

#include "tensor/tensor.h"

namespace redco {

// To a visible shape; one entry may be -1. A cut survives on the outermost dim of a merge or split whose
// borders fall on whole units of the new dim; otherwise the tensor is redistributed first.
Tensor reshape(const Tensor& x, Shape visible_shape);
// To a shape over all dims with `hidden` hidden ones: for vjps of broadcasting.
Tensor reshape_all(const Tensor& x, const Shape& shape, int hidden);
// Where reshape puts a cut of dim p.dim; false if it can't be kept. Exposed for tests.
bool reshape_placement(const Shape& from, const Shape& to, const Placement& p, Placement* out);

Tensor permute(const Tensor& x, const std::vector<int>& dims);  // visible dims, numpy's transpose
Tensor transpose(const Tensor& x, int a, int b);
// Elements [start, start + length) of a dim.
Tensor narrow(const Tensor& x, int dim, i64 start, i64 length);
// The inverse: zeros around x so that it lies at `start` in a dim of `size`.
Tensor pad_to(const Tensor& x, int dim, i64 start, i64 size);
Tensor concat(const std::vector<Tensor>& parts, int dim);
// Repeats dims of size 1 up to `shape` (all dims); the result is cut as `wish` says where x allows it.
Tensor broadcast_to(const Tensor& x, const Shape& shape, const Layout& wish);
Tensor broadcast_to(const Tensor& x, const Shape& visible_shape);
// dtype conversion f32 <-> f64.
Tensor cast(const Tensor& x, DType to);

// How often key/value heads are repeated on the current mesh (shard/layout.h kv_repeat).
i64 head_repeats(i64 n_head, i64 n_kv);
// Grouped heads: rows of `width` elements along dim 0, each repeated f times (f >= 1): [n * width, ...] ->
// [n * f * width, ...]. A Replicated input can come out cut like `like` (each rank makes its own slice only)
// where it has that dim: a bias lacks a weight's second.
Tensor repeat_heads(const Tensor& w, i64 width, i64 f, const Layout& like);
// Its vjp: sums each group of f. [n * f * width, ...] -> [n * width, ...].
Tensor sum_heads(const Tensor& g, i64 width, i64 f);

}  // namespace redco
