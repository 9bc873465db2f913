// Losses of images and texts that are compared with each other (CLIP, SigLIP). N pairs, D features.
#pragma once

#include "tensor/tensor.h"

namespace redco {

// exp(log_scale) images texts^T + bias of embeddings [N, D] of length 1: [N images, N texts]. log_scale and
// bias have one element; an undefined bias is 0.
Tensor pair_logits(const Tensor& images, const Tensor& texts, const Tensor& log_scale,
                   const Tensor& bias = {});
// The sum over pairs of their losses, from pair_logits(). Pair i is at [i, i].
// Half of the cross-entropies of row i and of column i (symmetric InfoNCE).
Tensor softmax_pair_loss(const Tensor& logits);
// -log sigmoid(z) of the pair, and of row i -log sigmoid(-z) of all others.
Tensor sigmoid_pair_loss(const Tensor& logits);

}  // namespace redco
