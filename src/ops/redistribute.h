// Redistribution: the same value with another placement. Not an op of the tape: the result keeps the node of
// its source.
#pragma once

#include <optional>
#include <vector>

#include "tensor/collectives.h"
#include "tensor/tensor.h"

namespace redco {

// The value of `t` with placement `to` on `axis`. Reducing a Partial to Replicated also replaces the storage
// in place, so that every holder of `t` has the reduced value. Communicates only if the placements require
// it; the ledger counts it.
Tensor redistribute(const Tensor& t, Axis axis, const Placement& to);
// All axes, in the order of the mesh.
Tensor redistribute(const Tensor& t, const Layout& to);
Tensor to_replicated(const Tensor& t);

// A tensor that is gathered on use: its value, Replicated on the data axes. Other tensors are returned as
// they are. recompute() does not keep the result but gathers again.
Tensor gathered(const Tensor& t);

// The same, started: `whole` is complete after the wait, and then has to be accounted for. Nothing if it
// takes more than one all-gather.
struct Gathering {
  Axis axis;
  Tensor whole;
  Pending pending;  // ends before `whole`
};
std::optional<Gathering> start_gathering(const Tensor& t);

// A tensor of a storage type as fp32, in scratch memory; others are returned unchanged.
Tensor widened(const Tensor& t);

// Completes tensors of which each rank has written the rows that are its part: `parts` is the layout of
// `whole` with state_dim() sharded over more axes. In place; one call of each such axis for all of them.
struct RowParts {
  Tensor whole;
  Layout parts;
};
void gather_rows_in_place(const std::vector<RowParts>& tensors);

// For ops that communicate inside: replaces t, which the op has just created and does not write again, by the
// sum (or maximum) over the ranks of the axis. The ledger counts it; recompute() keeps it.
void reduce_inside(const Tensor& t, Axis axis, bool max = false);

// The value of t with every Partial reduced.
Tensor without_partials(const Tensor& t);
// Whether t is Partial on an axis with this role.
bool is_partial_on(AxisRole role, const Tensor& t);

// Whether two layouts are the same on every axis with more than one rank: then the bytes are the same.
bool same_bytes_in(const Layout& a, const Layout& b);

// Whether the placement leaves every group of a grouped type on one rank.
bool keeps_groups(const Tensor& t, Axis axis, const Placement& p);

// Bytes that each rank sends for this move, from global shapes only (0: free). Used to choose strategies.
double move_cost(const Tensor& t, Axis axis, const Placement& to);

}  // namespace redco
