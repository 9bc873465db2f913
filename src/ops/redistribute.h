// Redistribution: the same value, stored otherwise. Not an op of the tape: the result keeps its source's
// node.
#pragma once

#include "tensor/tensor.h"

namespace redco {

// The value of `t` with placement `to` on `axis`. A Partial reduced to Replicated is also replaced in place
// (every holder of `t` sees the reduced storage). Communicates only where the placements ask for it; counted
// in the ledger.
Tensor redistribute(const Tensor& t, Axis axis, const Placement& to);
// Both axes, Partials reduced mp first.
Tensor redistribute(const Tensor& t, const Layout& to);
Tensor to_replicated(const Tensor& t);

// For ops that talk inside: t, which the op has just made and won't write to again, becomes the sum (or
// maximum) over the axis' ranks of what they hold. Counted; kept for recompute().
void reduce_inside(const Tensor& t, Axis axis, bool max = false);

// Strides of a contiguous row-major block, in elements.
std::vector<i64> row_major(const Shape& s);

// Bytes on the wire of that move per rank, from global shapes alone (0: free). For choosing strategies.
double move_cost(const Tensor& t, Axis axis, const Placement& to);

}  // namespace redco
