// The mixer of Mamba (Gu & Dao 2023): a linear recurrence of N numbers per channel, whose decay depends on
// channel, number and token, after a short convolution, and a gate.
//
// Legend: B batch, T tokens, C model width, I inner channels, N numbers per channel, R rank of the time
// steps, K taps of the convolution.
#pragma once

#include <string>

#include "models/spec_builder.h"
#include "nn/layers.h"

namespace redco {

struct SelectiveSettings {
  i64 inner = 0, state = 16, rank = 0, taps = 4;
  bool bias = false, conv_bias = true;
  std::string activation = "silu";
  // RMS norms of the time steps' inputs, B and C: none, without weights (Falcon-Mamba), or with them.
  enum class Norms : std::uint8_t { none, plain, weighted } norms = Norms::none;
  double eps = 1e-6;  // of these norms
  // Initial values. std: of the projections; steps: of the time steps' bias.
  double std = 0.02, out_scale = 1;
  Init steps{.kind = Init::Kind::time_step, .low = 1e-3, .high = 0.1};
};

// `prefix.in_proj`, `prefix.conv1d`, `prefix.x_proj`, ... The channels are cut over mp.
void declare_selective(SpecBuilder& b, const std::string& prefix, i64 width, const SelectiveSettings& s);
// out(scan(conv(x)) * silu(z)), [B, T, C] -> [B, T, C]. layer: index in the cache, a StateCache.
Tensor selective_mixer(const ParamTree& p, const std::string& prefix, const SelectiveSettings& s,
                       const ApplyOptions& o, size_t layer, const Tensor& x, const Tensor& key_mask);

}  // namespace redco
