// Mixtures of experts (Shazeer et al. 2017): every row goes through the few of many MLPs that a router chose.
#pragma once

#include "kernels/elementwise.h"
#include "tensor/tensor.h"

namespace redco {

// 1 at the k largest of the last dim, else 0; of equal ones the first. No gradient.
Tensor top_k_mask(const Tensor& x, i64 k);

// Gated MLPs side by side. In memory as linear weights are: (out, in) behind the number of the expert.
struct ExpertWeights {
  Tensor gate, up;  // [E, I, C]
  Tensor down;      // [E, C, I]
};
struct ExpertsOptions {
  kernels::Unary activation = kernels::Unary::silu;
  i64 per_row = 1;  // no row has more than this many chosen experts
};

// y[..., :] = sum over e with chosen[..., e] != 0 of weights[..., e] down_e (act(gate_e x) * up_e x);
// x [..., C], weights and chosen [..., E]. Only those rows are computed, expert after expert in order, so
// that a result doesn't depend on threads. Experts may be cut along E (each rank works on its own ones;
// uneven and empty parts are fine) or inside, gate and up along I and down too; either way y is Partial: one
// all-reduce a layer. FLOPs are counted as per_row / E of all rows an expert, whatever the router chose.
Tensor experts(const Tensor& x, const Tensor& weights, const Tensor& chosen, const ExpertWeights& w,
               const ExpertsOptions& o);
// The same by products of all rows with all experts: for second derivatives and tests.
Tensor experts_composed(const Tensor& x, const Tensor& weights, const Tensor& chosen, const ExpertWeights& w,
                        const ExpertsOptions& o);

}  // namespace redco
