// Sums and maxima over dims.
#pragma once

#include "tensor/node.h"
#include "tensor/tensor.h"

namespace redco {

// Sum over visible dims (negative: counted from the right). keepdim: the dims remain with size 1.
Tensor sum(const Tensor& x, const std::vector<int>& dims, bool keepdim = false);
Tensor sum_all(const Tensor& x);  // over all visible dims
Tensor mean(const Tensor& x, const std::vector<int>& dims, bool keepdim = false);
// Maximum over the last dim, shape [..., 1]; no gradient. Over a sharded dim it is a collective.
Tensor max_last(const Tensor& x);
// The vjp of broadcasting: g summed over the dims in which an operand of `shape` and `hidden` was broadcast.
// room: where the sum may be written, if it is the gradient of a leaf.
Tensor sum_to(const Tensor& g, const Shape& shape, int hidden, const GradientRoom& room = {});

}  // namespace redco
