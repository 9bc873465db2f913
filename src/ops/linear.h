// Matrix products.
#pragma once

#include "tensor/tensor.h"

namespace redco {

// A low-rank update W + scale B A of a weight W[O, I] (LoRA; Hu et al. 2021): A[r, I], B[O, r], placed like
// W's inputs and outputs.
struct LowRank {
  Tensor a, b;
  double scale = 1;
};

// y[..., O] = x[..., I] W[O, I]^T (+ bias[O]). The weight is stationary: it is only sliced, never moved.
// Leading dims of W (experts, hidden dims of vmap) give a batched product: W[..., O, I] and x[..., B, I]
// broadcast over them.
Tensor linear(const Tensor& x, const Tensor& w, const Tensor& bias = {});
// Several layers with the same input, as one call: y_i = x W_i^T + bias_i, where biases may be undefined.
// Weights that are placed alike are one op, with one product for dx.
Tensors linear(const Tensor& x, const Tensors& w, const Tensors& bias);
// y + scale x A^T B^T, where x may be another input than that of y's layer. A Partial x is not reduced.
Tensor add_low_rank(const Tensor& y, const Tensor& x, const LowRank& update);
// The same as the first without bias, but a Partial x is never reduced, neither here nor in gradients. Its
// result, which may be Partial, is added to another Partial sum: for low-rank paths parallel to a layer.
Tensor linear_partial(const Tensor& x, const Tensor& w);
// x[..., I] = g[..., O] W[O, I]; the weight is stationary.
Tensor linear_transposed(const Tensor& g, const Tensor& w);
// dW[O, I] = sum over rows of g[..., O]^T x[..., I].
Tensor linear_weight_gradient(const Tensor& g, const Tensor& x);

// a[..., i, k] b[..., k, j] over broadcast leading dims. trans_a, trans_b: the operand is stored as [..., k,
// i] or [..., j, k].
Tensor matmul(const Tensor& a, const Tensor& b, bool trans_a = false, bool trans_b = false);

}  // namespace redco
