// Reads the rotary positions of a config: rope_theta and rope_scaling of transformers 4, rope_parameters
// of 5.
#pragma once

#include <memory>
#include <vector>

#include "models/config.h"
#include "ops/attention.h"

namespace redco {

// 1 / theta^(2i / rotary) for i in [0, rotary / 2), rounded like transformers' fp32 values.
std::vector<float> rope_frequencies(double theta, i64 rotary);

// Reads and checks the config's rope settings for heads of width `head_dim` in half-split pairs. Types:
// default, linear, llama3, yarn (transformers' modeling_rope_utils). Other types, and keys that the type does
// not have, are errors.
RopeOptions read_rope(ModelConfig& c, i64 head_dim, i64 max_positions, double default_theta = 10000);

// Settings of two kinds of layers (Gemma 3). transformers 4: rope_theta (default 1e6) and rope_scaling for
// layers with full attention, rope_local_base_freq (default 1e4, never scaled) for sliding ones. transformers
// 5: rope_parameters with an object for each kind.
struct LayerRopes {
  RopeOptions full, sliding;
};
LayerRopes read_layer_ropes(ModelConfig& c, i64 head_dim, i64 max_positions);

}  // namespace redco
