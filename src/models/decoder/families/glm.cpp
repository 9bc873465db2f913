// GLM-4 (GLM Team 2024): fused MLPs, rotary positions in interleaved pairs on half of each head. GLM-4-0414
// (`glm4`): also norms after attention and MLP.
#include "models/decoder/families.h"
#include "models/decoder/read.h"

namespace redco {

DecoderArchitecture read_glm(ModelConfig& c) {
  const bool fourth = c.text_or("model_type", "glm") == "glm4";
  DecoderArchitecture s = read_usual(
      c, {.max_length = 131072, .kv_heads = 2, .head_dim = 128, .eps = 1.5625e-07, .padding_row = 151329});
  s.names.gate_up = "mlp.gate_up_proj";
  if (fourth) {
    s.names.attention_out_norm = "post_self_attn_layernorm";
    s.names.mlp_out_norm = "post_mlp_layernorm";
  }
  s.qkv_bias = c.boolean_or("attention_bias", true);
  s.ropes = {read_rope(c, s.heads.head_dim, s.max_length,
                       {.share_key = "partial_rotary_factor", .share = 0.5, .interleaved = true})};
  return s;
}

}  // namespace redco
