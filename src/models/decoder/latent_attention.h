// Multi-head latent attention (DeepSeek-V2, 2024): queries of nope_dim + rope_dim dims per head; keys and
// values of all heads are projected from one latent vector per token, and all heads share one rotary key.
#pragma once

#include <string>

#include "models/decoder/architecture.h"
#include "models/spec_builder.h"

namespace redco {

void declare_latent_attention(SpecBuilder& b, const std::string& layer, const LatentSettings& s, i64 heads,
                              i64 width, double std);
// [B, T, C] -> [B, T, C]. `index`: of the layer in the cache, which keeps the latent vector and the rotary
// key of each token.
Tensor latent_attention(const ParamTree& p, const std::string& layer, const LatentSettings& s,
                        const AttentionSettings& settings, const ApplyOptions& o, size_t index,
                        const Tensor& x, const Tensor& key_mask, const Tensor& positions,
                        const RopeOptions& rotary);

}  // namespace redco
