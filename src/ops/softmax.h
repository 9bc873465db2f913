// Softmax over the last dim.
#pragma once

#include "tensor/tensor.h"

namespace redco {

Tensor softmax(const Tensor& x);
Tensor log_softmax(const Tensor& x);  // composed of simpler ops

}  // namespace redco
