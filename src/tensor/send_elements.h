// Sends local elements of a tensor to the host's memory of another rank.
#pragma once

#include "comm/group.h"
#include "tensor/tensor.h"

namespace redco {

// The local elements [first, first + n), row-major, to rank `to` of the group, which calls Group::receive().
// Returns when the tensor may change. REQUIRES: fp32. (Defined in collectives.cpp, which alone communicates
// with a tensor's memory.)
void send_elements(const Tensor& from, i64 first, i64 n, Group& group, int to);

}  // namespace redco
