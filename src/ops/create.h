// Creates tensors from values, and reads their values.
#pragma once

#include <span>

#include "shard/state_sharding.h"
#include "tensor/tensor.h"

namespace redco {

Tensor zeros(const Shape& shape, DType dtype = DType::f32, const Layout& layout = {});
Tensor full(const Shape& shape, double value, DType dtype = DType::f32, const Layout& layout = {});
Tensor zeros_like(const Tensor& t);
Tensor ones_like(const Tensor& t);  // a Partial placement becomes Replicated

// An uninitialized parameter with this layout. With StateSharding::parameters its rows are also sharded over
// the replicas, and ops gather them (Tensor::gathered_on_use).
Tensor parameter(const Shape& shape, DType dtype, const Layout& layout, StateSharding sharding);

// Every rank passes the whole value and keeps its part. On a meta context `values` may be empty.
Tensor from_values(const Shape& shape, std::span<const float> values, const Layout& layout = {});
Tensor from_values(const Shape& shape, std::span<const double> values, const Layout& layout = {});
Tensor from_ids(const Shape& shape, std::span<const i32> ids, const Layout& layout = {});
// This rank's part of a value cut along dim 0 over dp: the batch fields that collate makes.
Tensor from_local_ids(const Shape& global_shape, std::span<const i32> local_ids);
Tensor from_local_values(const Shape& global_shape, std::span<const float> local_values);
Layout batch_layout();  // dp S(0), the other axes R

// Uniform in [0, 1) or standard normal, f32. Each value depends only on the key and the element's
// coordinates, so it is equal on every mesh. Dim 0 is the batch: its rows are counted in the global batch
// (Context::random.row_offset), or, in predict(), by the ordinals of the examples (of k rows for each, if
// shape[0] is k times the number of examples). So an example gets the same numbers for every mesh and every
// per_device_batch_size. Do not merge the batch with other dims before a draw. Placed like batch_layout().
Tensor random_uniform(const Shape& shape, u64 key);
Tensor random_normal(const Shape& shape, u64 key);
// With this placement. Dim 0 is the batch if dp cuts it (S(0)). Otherwise it is not, and every micro-batch
// gets the same numbers: for parameters and projections, layout {} or that of the parameter.
Tensor random_uniform(const Shape& shape, u64 key, const Layout& layout);
Tensor random_normal(const Shape& shape, u64 key, const Layout& layout);
// Initial values, in place: fills t (f32) with normal numbers of this standard deviation.
void fill_normal(const Tensor& t, u64 key, double std);
void fill_uniform(const Tensor& t, u64 key, double bound);  // in [-bound, bound)

// 1 where label >= 0, else 0.
Tensor label_mask(const Tensor& labels, DType dtype);

// The whole value as doubles, on every rank (collective); zeros on a meta context.
std::vector<double> to_values(const Tensor& t);
std::vector<i32> to_ids(const Tensor& t);
// The value of a tensor with one element, reduced first if Partial (collective); 0 on a meta context.
double item(const Tensor& t);

}  // namespace redco
