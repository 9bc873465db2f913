// StableLM 2 and 3B-4E1T (Bellagente et al. 2024): layer norms, gated MLPs, rotary positions on a quarter of
// each head.
#include "models/decoder/families.h"
#include "models/decoder/read.h"

namespace redco {

DecoderArchitecture read_stablelm(ModelConfig& c) {
  DecoderArchitecture s = read_usual(c, {.max_length = 4096, .eps_key = "layer_norm_eps", .eps = 1e-5});
  s.names.q_norm = "self_attn.q_layernorm";
  s.names.k_norm = "self_attn.k_layernorm";
  s.norm = {.rms = false, .bias = true, .eps = s.norm.eps};
  if (c.boolean_or("use_parallel_residual", false)) {
    s.block = Block::parallel;
    s.names.mlp_norm = "";
  }
  s.qkv_bias = c.boolean_or("use_qkv_bias", false);
  if (c.boolean_or("qk_layernorm", false))
    s.head_norms = {HeadNormSettings::Over::each_head, {.rms = false, .eps = s.norm.eps}, true};
  s.ropes = {
      read_rope(c, s.heads.head_dim, s.max_length, {.share_key = "partial_rotary_factor", .share = 0.25})};
  s.mlp_out_dropout = c.rate_or("hidden_dropout", 0);
  return s;
}

}  // namespace redco
