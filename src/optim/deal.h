// Dealing: tensors whose rows the replicas divide, one whole tensor on each replica in turn.
//
// A job is a parameter with its gradient and state. The jobs of a deal have tensors of equal shapes and
// layouts, and there are at most as many jobs as replicas. Tensors of one shape move together, in a stack
// (jobs, tensors, shape...), by one all-to-all.
#pragma once

#include <vector>

#include "ops/redistribute.h"

namespace redco {

// Whether the replicas of this axis divide the state.
bool divides_state(const Mesh& mesh, Axis a);

// The stack of parts[j], the tensors of job j, as the replicas hold them after the deal: job j whole on the
// j-th replica.
Tensor to_replicas(const std::vector<Tensors>& parts);
// The inverse, into the bytes of the tensors.
void from_replicas(const Tensor& dealt, const std::vector<Tensors>& parts);

// An uninitialized stack of n tensors like `like` for each of k jobs, and the whole tensor n of this
// replica's job in the bytes of a dealt stack; part: a tensor of the job as it was before the deal.
Tensor stack_of(i64 k, i64 n, const Tensor& like, const Layout& layout);
Tensor dealt_entry(const Tensor& stack, i64 n, const Tensor& part);

// Writes the bytes of a tensor of the same shape and layout.
void copy_into(const Tensor& from, const Tensor& to);
// Elements [first, first + n) of the local block, in its bytes, as a vector of this rank alone.
inline Tensor range_of(const Tensor& t, i64 first, i64 n) { return Tensor::within(t, first, {n}, {}); }

}  // namespace redco
