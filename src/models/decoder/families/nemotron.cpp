// Nemotron-4 and Minitron (NVIDIA 2024): layer norms whose weights are stored minus one, squared ReLU, rotary
// positions on half of each head. Jais 2 (Inception 2025): usual layer norms, whole rotary positions, biases.
#include "models/decoder/families.h"
#include "models/decoder/read.h"

namespace redco {

DecoderArchitecture read_nemotron(ModelConfig& c) {
  DecoderArchitecture s =
      read_usual(c, {.max_length = 4096, .eps_key = "norm_eps", .eps = 1e-5, .activation = "relu2"});
  s.norm = {.rms = false, .bias = true, .unit_offset = true, .eps = s.norm.eps};
  s.gated = false;
  s.qkv_bias = s.out_bias = c.boolean_or("attention_bias", false);
  s.mlp_bias = c.boolean_or("mlp_bias", false);
  s.ropes = {
      read_rope(c, s.heads.head_dim, s.max_length, {.share_key = "partial_rotary_factor", .share = 0.5})};
  return s;
}

DecoderArchitecture read_jais2(ModelConfig& c) {
  DecoderArchitecture s =
      read_usual(c, {.max_length = 8192, .eps_key = "layer_norm_eps", .eps = 1e-5, .activation = "relu2"});
  s.norm = {.rms = false, .bias = true, .eps = s.norm.eps};
  s.gated = false;
  s.qkv_bias = s.out_bias = c.boolean_or("attention_bias", true);
  s.mlp_bias = c.boolean_or("mlp_bias", true);
  s.ropes = {read_rope(c, s.heads.head_dim, s.max_length)};
  return s;
}

}  // namespace redco
