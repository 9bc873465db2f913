// Matrix products.
#pragma once

#include "tensor/tensor.h"

namespace redco {

// y[..., O] = x[..., I] W[O, I]^T (+ bias[O]). The weight is stationary: it is never moved, only sliced. With
// leading dims on W (experts, hidden dims of vmap) a batched product: W[..., O, I] and x[..., B, I] broadcast
// over them.
Tensor linear(const Tensor& x, const Tensor& w, const Tensor& bias = {});
// The same without a bias, where a Partial x is never summed on the way, neither forward nor in gradients:
// what comes out, Partial too, is added to another Partial sum. For low-rank paths beside a layer.
Tensor linear_partial(const Tensor& x, const Tensor& w);
// x[..., I] = g[..., O] W[O, I]: the weight again stationary.
Tensor linear_transposed(const Tensor& g, const Tensor& w);
// dW[O, I] = sum over rows of g[..., O]^T x[..., I].
Tensor linear_weight_gradient(const Tensor& g, const Tensor& x);

// a[..., i, k] b[..., k, j] over broadcast leading dims; trans: the operand is stored [.., k, i] or [.., j,
// k].
Tensor matmul(const Tensor& a, const Tensor& b, bool trans_a = false, bool trans_b = false);

}  // namespace redco
