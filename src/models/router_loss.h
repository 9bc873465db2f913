// The load-balancing loss of a mixture of experts (Fedus et al. 2021, equations 4 to 6), as transformers'
// load_balancing_loss_func: E sum over e of f_e p_e, over the tokens of all layers together. f_e is the
// number of choices of expert e per token, p_e the mean of its probability. It is the number of chosen
// experts of a token if all experts are used evenly, and more if some are preferred.
//
// It is a product of two means of the whole batch, and no mean over its parts. So it is computed of sums over
// the tokens of each row.
#pragma once

#include <vector>

#include "tensor/tensor.h"

namespace redco {

// Sums over the layers and tokens of each row.
struct RouterSums {
  Tensor chosen, probabilities;  // [B, E]; chosen has no gradient
  Tensor tokens;                 // [B]: tokens times layers
};
// logits: of ApplyOptions::router_logits, [B, T, E] of each layer, at least one. mask [B, T] i32: 1 = a
// token, 0 = padding; undefined: no padding.
RouterSums router_sums(const std::vector<Tensor>& logits, i64 per_token, const Tensor& mask);

// The loss of all rows: one element.
Tensor load_balancing_loss(const RouterSums& sums);

}  // namespace redco
