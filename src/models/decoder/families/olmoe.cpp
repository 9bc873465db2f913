// OLMoE (Muennighoff et al. 2024): norms of all queries and all keys of a token, and many small experts.
// FlexOlmo (Ai2 2025): a few large experts, and norms after each part only.
#include "models/decoder/families.h"
#include "models/decoder/read.h"

namespace redco {

DecoderArchitecture read_olmoe(ModelConfig& c) {
  const bool flex = c.text_or("model_type", "olmoe") == "flex_olmo";
  DecoderArchitecture s =
      read_usual(c, {.max_length = 4096, .eps = flex ? 1e-6 : 1e-5, .padding_row = flex ? 100277 : 1});
  s.qkv_bias = s.out_bias = c.boolean_or("attention_bias", false);
  s.head_norms = {HeadNormSettings::Over::width, s.norm};
  if (flex) {
    s.names.attention_norm = s.names.mlp_norm = "";
    s.names.attention_out_norm = "post_attention_layernorm";
    s.names.mlp_out_norm = "post_feedforward_layernorm";
  } else {
    s.clip_qkv = c.number_or("clip_qkv", 0);
    if (s.clip_qkv < 0) c.fail("clip_qkv", "expected a number above 0, or null");
  }
  s.ropes = {read_rope(c, s.heads.head_dim, s.max_length, {.theta = flex ? 500000.0 : 10000.0})};
  MixtureSettings m;
  m.activation = read_expert_activation(c, s.activation);
  m.count = c.integer_as_or({"num_experts", "num_local_experts"}, flex ? 7 : 64);
  read_router(c, m, "num_experts", flex ? 5 : 8, 0.01);
  m.inner = s.inner;
  m.normalized = c.boolean_or("norm_topk_prob", false);
  for (DecoderLayer& l : s.layers) l.mixture = true;
  s.mixture = m;
  return s;
}

}  // namespace redco
