// The gated short convolution of LFM2 (Liquid AI 2025), in place of attention.
//
// Legend: B batch, T tokens, C model width.
#pragma once

#include <string>

#include "models/spec_builder.h"
#include "nn/layers.h"

namespace redco {

struct ShortConvSettings {
  i64 taps = 3;
  bool bias = false;  // of the convolution and both projections
  double std = 0.02;
};

// `prefix.in_proj`, `prefix.conv` and `prefix.out_proj`; the channels are cut over mp.
void declare_short_conv(SpecBuilder& b, const std::string& prefix, i64 width, const ShortConvSettings& s);
// out(c * conv(b * x)) with b, c and x from in_proj, [B, T, C] -> [B, T, C]. layer: index in the cache, a
// StateCache.
Tensor short_conv_mixer(const ParamTree& p, const std::string& prefix, const ShortConvSettings& s,
                        const ApplyOptions& o, size_t layer, const Tensor& x, const Tensor& key_mask);

}  // namespace redco
