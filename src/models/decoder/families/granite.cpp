// Granite 3 (IBM 2024): LLaMA with multipliers of embedding, scores, residual stream and logits. HyperCLOVA X
// SEED (NAVER 2025): also norms after attention and MLP.
#include <cmath>

#include "models/decoder/families.h"
#include "models/decoder/read.h"

namespace redco {

DecoderArchitecture read_granite(ModelConfig& c) {
  DecoderArchitecture s = read_granite_with(c, {.max_length = 2048});
  s.mlp_bias = c.boolean_or("mlp_bias", false);
  return s;
}

DecoderArchitecture read_granite_with(ModelConfig& c, const DecoderDefaults& defaults) {
  DecoderArchitecture s = read_usual(c, defaults);
  s.ropes = {read_rope(c, s.heads.head_dim, s.max_length)};
  s.qkv_bias = s.out_bias = c.boolean_or("attention_bias", false);
  s.embedding_scale = c.number_or("embedding_multiplier", 1);
  s.score_scale = c.number_or("attention_multiplier", 1);
  s.residual_scale = c.number_or("residual_multiplier", 1);
  s.logit_scale = 1 / c.positive_or("logits_scaling", 1);
  return s;
}

DecoderArchitecture read_hyperclovax(ModelConfig& c) {
  DecoderArchitecture s = read_granite(c);
  if (!c.has("attention_multiplier")) s.score_scale = 1 / std::sqrt(static_cast<double>(s.heads.head_dim));
  s.logit_scale = 1 / s.logit_scale;  // the key is a factor here
  if (c.boolean_or("use_post_norm", true)) {
    s.names.attention_out_norm = "post_norm1";
    s.names.mlp_out_norm = "post_norm2";
  }
  return s;
}

}  // namespace redco
