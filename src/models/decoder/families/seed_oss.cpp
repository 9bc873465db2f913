// Seed-OSS (ByteDance 2025): LLaMA with biases and dropout. Arcee (AFM 2025): LLaMA with squared ReLU, no
// gate.
#include "models/decoder/families.h"
#include "models/decoder/read.h"

namespace redco {

DecoderArchitecture read_seed_oss(ModelConfig& c) {
  DecoderArchitecture s =
      read_usual(c, {.max_length = 524288, .kv_heads = 8, .head_dim = 128, .padding_row = 1});
  s.qkv_bias = c.boolean_or("attention_bias", true);
  s.out_bias = c.boolean_or("attention_out_bias", false);
  s.mlp_bias = c.boolean_or("mlp_bias", false);
  s.attention_dropout = c.rate_or("attention_dropout", 0.1);
  s.attention_out_dropout = s.mlp_out_dropout = c.rate_or("residual_dropout", 0.1);
  s.ropes = {read_rope(c, s.heads.head_dim, s.max_length)};
  c.inert({"pretraining_tp"});
  return s;
}

DecoderArchitecture read_arcee(ModelConfig& c) {
  DecoderArchitecture s = read_usual(c, {.max_length = 4096, .eps = 1e-5, .activation = "relu2"});
  s.gated = false;
  s.qkv_bias = s.out_bias = c.boolean_or("attention_bias", false);
  s.mlp_bias = c.boolean_or("mlp_bias", false);
  s.ropes = {read_rope(c, s.heads.head_dim, s.max_length)};
  return s;
}

}  // namespace redco
