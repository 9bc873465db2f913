// Reads the rotary positions of a config: rope_theta and rope_scaling of transformers 4, rope_parameters
// of 5.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "models/config.h"
#include "ops/attention.h"

namespace redco {

// 1 / theta^(2i / rotary) for i in [0, rotary / 2), rounded like transformers' fp32 values.
std::vector<float> rope_frequencies(double theta, i64 rotary);

// Rotary positions whose frequencies may depend on the length of the sequence.
struct Rope {
  RopeOptions usual;  // for sequences of at most usual_length tokens
  i64 usual_length = 0;
  std::function<RopeOptions(i64 tokens)> beyond;  // for longer ones; null: `usual` for all
  bool unlimited = false;                         // for sequences of any length
  double query_growth = 0;                        // see DecoderArchitecture
  i64 query_growth_length = 1;
  double score_magnitude = 1;  // yarn's mscale_all_dim: DeepSeek's scores are multiplied by its square
  RopeOptions at(i64 tokens) const { return beyond && tokens > usual_length ? beyond(tokens) : usual; }
};

// What differs between families.
struct RopeFamily {
  double theta = 10000;  // default
  // The keys outside of the rope object.
  const char* theta_key = "rope_theta";  // null: none
  const char* share_key = nullptr;       // of the rotated share of a head; null: the whole head
  double share = 1;                      // default
  bool interleaved = false;              // rotates the pairs (2i, 2i + 1) instead of (i, i + half)
  bool renamed_longrope = false;         // types su and yarn mean longrope (Phi-3)
  const char* absent = "{}";             // the rope object of a config that has none
  // longrope has short factors only, and the keys short_mscale and long_mscale in place of attention_factor
  // (Phi-3.5-MoE in transformers).
  bool magnitudes = false;
  bool growth = false;    // the keys llama_4_scaling_beta and original_max_position_embeddings (Ministral 3)
  bool reversed = false;  // rotates by the negative angles (nanochat)
  bool alpha = false;  // with the key alpha, type dynamic stretches the base once, for all lengths (Hunyuan)
};

// Reads and checks the config's rope settings for heads of width `head_dim`. Types: default, linear, dynamic,
// llama3, yarn, longrope (transformers' modeling_rope_utils). Other types are errors. Keys that the
// type does not have are ignored, as in transformers, and one log line lists them.
Rope read_rope(ModelConfig& c, i64 head_dim, i64 max_positions, const RopeFamily& family = {});

// Settings of two kinds of layers. transformers 4: the keys of `full` and rope_scaling for layers with full
// attention, those of `sliding` (never scaled) for sliding ones. transformers 5: rope_parameters with an
// object for each kind. The defaults are Gemma 3's.
struct LayerRopes {
  Rope full, sliding;
};
LayerRopes read_layer_ropes(ModelConfig& c, i64 head_dim, i64 max_positions,
                            const RopeFamily& of_full = {.theta = 1e6},
                            const RopeFamily& of_sliding = {.theta = 10000,
                                                            .theta_key = "rope_local_base_freq"});

}  // namespace redco
