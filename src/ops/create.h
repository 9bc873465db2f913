// Tensors from values.
#pragma once

#include <span>

#include "tensor/tensor.h"

namespace redco {

Tensor zeros(const Shape& shape, DType dtype = DType::f32, const Layout& layout = {});
Tensor full(const Shape& shape, double value, DType dtype = DType::f32, const Layout& layout = {});
Tensor zeros_like(const Tensor& t);
Tensor ones_like(const Tensor& t);  // a Partial place becomes Replicated

// Every rank passes the whole value; each keeps its part. On a meta context `values` may be empty.
Tensor from_values(const Shape& shape, std::span<const float> values, const Layout& layout = {});
Tensor from_values(const Shape& shape, std::span<const double> values, const Layout& layout = {});
Tensor from_ids(const Shape& shape, std::span<const i32> ids, const Layout& layout = {});
// This rank's own part of a value cut along dim 0 over dp: batch fields made by collate.
Tensor from_local_ids(const Shape& global_shape, std::span<const i32> local_ids);
Tensor from_local_values(const Shape& global_shape, std::span<const float> local_values);
Layout batch_layout();  // dp S(0), mp R

// Uniform in [0, 1) and standard normal, f32, by key and the element's coordinates: the same values on every
// mesh. The placement over dp says what dim 0 is. S(0), as in batch_layout(): rows of the batch, which are
// counted in the global batch (Context::random.row_offset), so that micro-batches draw different numbers and
// any per_device_batch_size draws the same ones. Any other: not the batch; every micro-batch draws the same.
Tensor random_uniform(const Shape& shape, u64 key, const Layout& layout = {});
Tensor random_normal(const Shape& shape, u64 key, const Layout& layout = {});
// Overwrites t (f32) with normal numbers of this standard deviation: initial values, in place.
void fill_normal(const Tensor& t, u64 key, double std);
void fill_uniform(const Tensor& t, u64 key, double bound);  // in [-bound, bound)

// 1 where label >= 0, else 0.
Tensor label_mask(const Tensor& labels, DType dtype);

// The whole value on every rank (collective), as doubles; empty on a meta context.
std::vector<double> to_values(const Tensor& t);
std::vector<i32> to_ids(const Tensor& t);
// Value of a one-element tensor; reduces it first (collective). 0 on a meta context.
double item(const Tensor& t);

}  // namespace redco
