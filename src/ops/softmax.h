// Softmax and its normalizer over the last dim.
#pragma once

#include "tensor/tensor.h"

namespace redco {

Tensor softmax(const Tensor& x);
Tensor log_softmax(const Tensor& x);  // a cut last dim costs two collectives with a number per row
// log(sum(exp(x))), without overflow: shape [...], or [..., 1] with keepdim. A row of all -inf gives -inf,
// and its gradient is zero. A cut last dim costs two collectives with a number per row.
Tensor log_sum_exp(const Tensor& x, bool keepdim = false);

}  // namespace redco
