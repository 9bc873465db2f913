// Losses of preferences, as functions of log-probabilities. The definitions are those of TRL.
#pragma once

#include "pipeline/preference_settings.h"
#include "tensor/tensor.h"

namespace redco {

// Of each pair [B]: `chosen` and `rejected` are the answers' log-probabilities: sums over their tokens
// relative to the reference (sigmoid, ipo), means over their tokens (simpo, orpo). REQUIRES: not kto.
//
//   h = chosen - rejected; s: label_smoothing
//   sigmoid: -(1 - s) log sigmoid(beta h) - s log sigmoid(-beta h)
//   ipo:     (h - 1 / (2 beta))^2
//   simpo:   as sigmoid, with beta h - simpo_gamma in place of beta h
//   orpo:    -beta log sigmoid(log odds(chosen) - log odds(rejected)), odds(p) = p / (1 - p)
Tensor pair_losses(const DpoSettings& o, const Tensor& chosen, const Tensor& rejected);

// KTO's loss of each answer [B]: w (1 - sigmoid(sign beta (ratio - z))).
//
//   ratio [B]   log-probability relative to the reference, a sum over the answer's tokens
//   sign [B]    1: a good answer, -1: a bad one; it chooses w, desirable_weight or undesirable_weight
//   z [1]       estimate of the KL divergence to the reference, at least 0; without gradient
Tensor judged_losses(const DpoSettings& o, const Tensor& ratio, const Tensor& sign, const Tensor& z);

// [1]: the mean of `ratios` [B] where `counts` [B] is 1, and at least 0.
Tensor kl_estimate(const Tensor& ratios, const Tensor& counts);

}  // namespace redco
