// Rotary positions as configs describe them: v4's rope_theta + rope_scaling, v5's rope_parameters.
#pragma once

#include <memory>
#include <vector>

#include "models/config.h"
#include "ops/attention.h"

namespace redco {

// 1 / theta^(2i / rotary) for i in [0, rotary / 2), rounded as transformers does it in fp32.
std::vector<float> rope_frequencies(double theta, i64 rotary);

// Reads and checks the config's rope settings for heads of width `head_dim` in half-split pairs. Types:
// default, linear, llama3, yarn (transformers' modeling_rope_utils). Anything else, and keys that the type
// doesn't have, are errors.
RopeOptions read_rope(ModelConfig& c, i64 head_dim, i64 max_positions, double default_theta = 10000);

// Settings of two kinds of layers (Gemma 3): v4's rope_theta + rope_scaling of the full ones (base 1e6 where
// absent) and rope_local_base_freq of the sliding ones (1e4, never scaled), v5's rope_parameters with an
// object for each.
struct LayerRopes {
  RopeOptions full, sliding;
};
LayerRopes read_layer_ropes(ModelConfig& c, i64 head_dim, i64 max_positions);

}  // namespace redco
