// Gradients between backward and update: bucketed reduction, norm, clipping.
#pragma once

#include <vector>

#include "nn/param_tree.h"

namespace redco {

// Maximum number of elements of a bucket, i.e. of one all-reduce (a larger tensor is a bucket alone).
constexpr i64 kBucketElements = 8 << 20;

// acc += g; acc may be empty. Both stay unreduced over dp. Gradients may share storage with each other and
// with other tensors; these keep their values.
void accumulate(std::vector<Tensor>& acc, std::vector<Tensor>&& g);

// Redistributes gradients to their parameters' placements: first Partials over mp, then Partials over dp, in
// buckets that depend only on names and shapes. Then every replica has the same bits. This is the only
// communication of data parallelism. grads[k] belongs to parameter index[k]. Gradients that share storage are
// reduced once; other tensors that share it keep their values.
void reduce_gradients(std::vector<Tensor>& grads, const ParamTree& params, const std::vector<size_t>& index,
                      i64 bucket_elements = kBucketElements);

// The Euclidean norm of all gradients together; each element counts once. One scalar is reduced over mp.
double gradient_norm(const std::vector<Tensor>& grads);

}  // namespace redco
