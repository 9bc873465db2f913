// StarCoder 2 (Lozhkov et al. 2024): layer norms and biases, rotary positions, one sliding window.
#include "models/decoder/families.h"
#include "models/decoder/read.h"

namespace redco {

DecoderArchitecture read_starcoder2(ModelConfig& c) {
  DecoderArchitecture s = read_usual(c, {.max_length = 4096,
                                         .kv_heads = 2,
                                         .eps_key = "norm_epsilon",
                                         .eps = 1e-5,
                                         .tied = true,
                                         .activation = "gelu_pytorch_tanh"});
  s.names.up = "mlp.c_fc";
  s.names.down = "mlp.c_proj";
  s.norm = {.rms = false, .bias = true, .eps = s.norm.eps};
  s.gated = false;
  s.qkv_bias = s.out_bias = s.mlp_bias = c.boolean_or("use_bias", true);
  s.ropes = {read_rope(c, s.heads.head_dim, s.max_length)};
  s.embedding_dropout = c.rate_or("embedding_dropout", 0);
  s.attention_out_dropout = s.mlp_out_dropout = c.rate_or("residual_dropout", 0);
  const i64 window = read_window(c, 0);
  for (DecoderLayer& l : s.layers) l.window = window;
  c.expect("mlp_type", {"\"default\""});
  c.expect("norm_type", {"\"layer_norm\""});
  return s;
}

}  // namespace redco
