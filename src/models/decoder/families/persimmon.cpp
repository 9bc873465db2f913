// Persimmon (Adept 2023): GPT-NeoX's fused projections in sequential blocks, norms of the heads, rotary
// positions on half of each head, squared ReLU.
#include "models/decoder/families.h"
#include "models/decoder/read.h"

namespace redco {

DecoderArchitecture read_persimmon(ModelConfig& c) {
  DecoderArchitecture s = read_usual(c, {.max_length = 16384,
                                         .grouped = false,
                                         .eps_key = "layer_norm_eps",
                                         .eps = 1e-5,
                                         .activation = "relu2"});
  s.names.final_norm = "final_layernorm";
  s.names.qkv = "self_attn.query_key_value";
  s.names.out = "self_attn.dense";
  s.names.q_norm = "self_attn.q_layernorm";
  s.names.k_norm = "self_attn.k_layernorm";
  s.names.up = "mlp.dense_h_to_4h";
  s.names.down = "mlp.dense_4h_to_h";
  s.norm = {.rms = false, .bias = true, .eps = s.norm.eps};
  if (c.boolean_or("qk_layernorm", true)) s.head_norms = {HeadNormSettings::Over::head, s.norm};
  s.qkv = QkvStorage::groups;
  s.qkv_bias = s.out_bias = s.mlp_bias = true;
  s.gated = false;
  s.ropes = {
      read_rope(c, s.heads.head_dim, s.max_length, {.share_key = "partial_rotary_factor", .share = 0.5})};
  s.mlp_out_dropout = c.rate_or("hidden_dropout", 0);
  return s;
}

}  // namespace redco
