// Mixture of experts (Shazeer et al. 2017): each row is processed by the few MLPs that a router selects.
#pragma once

#include "kernels/arguments.h"
#include "tensor/tensor.h"

namespace redco {

// 1 at the k largest elements of the last dim, 0 elsewhere; the first of equal elements wins. No gradient.
Tensor top_k_mask(const Tensor& x, i64 k);

// Gated MLPs. In memory like linear weights: (out, in) after the expert's index.
struct ExpertWeights {
  Tensor gate, up;  // [E, I, C]
  Tensor down;      // [E, C, I]
  // [E, I], or both undefined. There is none of `down`: it is the product of the weights with a matrix.
  Tensor gate_bias{}, up_bias{};
};
struct ExpertsOptions {
  kernels::Unary activation = kernels::Unary::silu;
  i64 per_row = 1;  // maximum number of chosen experts of a row
  // limit > 0: in place of act(g) u, min(g, limit) sigmoid(alpha min(g, limit)) (u' + 1), with u' as u but in
  // [-limit, limit] (gpt-oss).
  double limit = 0, alpha = 1;
};

// y[..., :] = sum over e with chosen[..., e] != 0 of weights[..., e] down_e (act(gate_e x) * up_e x); x [...,
// C], weights and chosen [..., E]. Biases are added to gate_e x and up_e x. Only chosen rows are computed,
// expert by expert in order, so results do not depend on the number of threads. Experts may be cut along E
// (each rank computes its own experts; parts may be uneven or empty) or inside (gate, up and down along I).
// In both cases y is Partial: one all-reduce per layer. Each expert counts FLOPs for per_row / E of all rows,
// whatever the router selects.
Tensor experts(const Tensor& x, const Tensor& weights, const Tensor& chosen, const ExpertWeights& w,
               const ExpertsOptions& o);
// The same by products of all rows with all experts, for second derivatives and tests.
Tensor experts_composed(const Tensor& x, const Tensor& weights, const Tensor& chosen, const ExpertWeights& w,
                        const ExpertsOptions& o);

}  // namespace redco
