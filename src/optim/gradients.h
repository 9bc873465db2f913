// Gradients between backward and update: reduced in buckets, measured, clipped.
#pragma once

#include <vector>

#include "nn/param_tree.h"

namespace redco {

// Elements of a bucket: what one all-reduce carries at most (a larger tensor has a bucket of its own).
constexpr i64 kBucketElements = 8 << 20;

// acc += g, where acc may be empty. Both stay unreduced over dp. Gradients may share storage with each other
// and with other tensors, which keep their values.
void accumulate(std::vector<Tensor>& acc, std::vector<Tensor>&& g);

// Brings gradients to their parameters' placements: Partial over mp first, then Partial over dp, each in
// buckets whose layout follows from names and shapes. After it every replica holds the same bits. Data
// parallelism is nothing else. grads[k] is of parameter index[k]. Gradients that share storage are reduced
// once; other tensors that share it keep their values.
void reduce_gradients(std::vector<Tensor>& grads, const ParamTree& params, const std::vector<size_t>& index,
                      i64 bucket_elements = kBucketElements);

// The Euclidean norm of all gradients together; each element counted once. One scalar is reduced over mp.
double gradient_norm(const std::vector<Tensor>& grads);

}  // namespace redco
