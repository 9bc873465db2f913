// Phi-1, 1.5 and 2 (Li et al. 2023): parallel blocks behind one layer norm, rotary positions on a part of
// each head, biases everywhere.
#include "models/decoder/families.h"
#include "models/decoder/read.h"

namespace redco {

DecoderArchitecture read_phi(ModelConfig& c) {
  DecoderArchitecture s =
      read_usual(c, {.max_length = 2048, .eps_key = "layer_norm_eps", .eps = 1e-5, .activation = "gelu_new"});
  s.names.final_norm = "final_layernorm";
  s.names.mlp_norm = "";
  s.names.out = "self_attn.dense";
  s.names.up = "mlp.fc1";
  s.names.down = "mlp.fc2";
  s.names.q_norm = "self_attn.q_layernorm";
  s.names.k_norm = "self_attn.k_layernorm";
  s.norm = {.rms = false, .bias = true, .eps = s.norm.eps};
  s.block = Block::parallel;
  s.gated = false;
  s.qkv_bias = s.out_bias = s.mlp_bias = s.head_bias = true;
  s.ropes = {
      read_rope(c, s.heads.head_dim, s.max_length, {.share_key = "partial_rotary_factor", .share = 0.5})};
  if (c.boolean_or("qk_layernorm", false)) s.head_norms = {HeadNormSettings::Over::head, s.norm};
  s.embedding_dropout = c.rate_or("embd_pdrop", 0);
  s.attention_out_dropout = s.mlp_out_dropout = c.rate_or("resid_pdrop", 0);
  return s;
}

}  // namespace redco
