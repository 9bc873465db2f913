// Masks of self-attention as biases of its scores, for ApplyOptions::attention_bias: 0 where a query sees a
// key, and a number so low elsewhere that the probability is 0. They replace the causal mask, so
// ApplyOptions::causal must be false.
#pragma once

#include "tensor/tensor.h"

namespace redco {

// 0 where `seen` [...] is not 0, else the low number. seen: fp32 or ids.
Tensor bias_of_mask(const Tensor& seen);
// Prefix language models (Raffel et al. 2020): all tokens see the first prefix[b] tokens of their row; the
// others are causal. prefix [B] -> [B, 1, tokens, tokens].
Tensor prefix_bias(const Tensor& prefix, i64 tokens);
// Blocks of `block` tokens see themselves and the earlier blocks (block diffusion: Arriola et al. 2025). ->
// [1, 1, tokens, tokens].
Tensor block_bias(i64 tokens, i64 block);

}  // namespace redco
