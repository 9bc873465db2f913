// The mixer of Gated DeltaNet (Yang et al. 2024): the gated delta rule per head after a short convolution,
// then a norm of each head and a gate. No positions: the order of tokens is in the recurrence.
//
// Legend: B batch, T tokens, C model width, H value heads of width P, G key heads of width N, which H / G
// value heads share; K taps of the convolution.
#pragma once

#include <string>

#include "models/spec_builder.h"
#include "nn/layers.h"

namespace redco {

struct DeltaSettings {
  i64 heads = 0, head_dim = 0, key_heads = 0, key_dim = 0, taps = 4;
  double eps = 1e-6;  // of the norm
  std::string activation = "silu";
  // How files store the projections: by key heads in in_proj_qkvz and in_proj_ba (Qwen3-Next), or in
  // in_proj_qkv, in_proj_z, in_proj_b and in_proj_a.
  bool by_key_heads = true;
  double std = 0.02;  // of initial weights
};

// The heads are cut over mp, with the key heads if there are enough of them.
void declare_delta(SpecBuilder& b, const std::string& prefix, i64 width, const DeltaSettings& s);
// [B, T, C] -> [B, T, C]. layer: index in the cache, a StateCache.
Tensor delta_mixer(const ParamTree& p, const std::string& prefix, const DeltaSettings& s,
                   const ApplyOptions& o, size_t layer, const Tensor& x, const Tensor& key_mask);

}  // namespace redco
