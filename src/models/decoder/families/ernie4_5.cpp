// ERNIE 4.5 (Baidu 2025) and Helium (Kyutai 2025): LLaMA with rotary positions in interleaved pairs.
#include "models/decoder/families.h"
#include "models/decoder/read.h"

namespace redco {

DecoderArchitecture read_ernie4_5(ModelConfig& c) {
  DecoderArchitecture s = read_usual(
      c, {.max_length = 131072, .kv_heads = 2, .head_dim = 128, .eps = 1e-5, .tied = true, .padding_row = 0});
  s.attention_dropout = 0;  // transformers reads no rate
  s.qkv_bias = s.out_bias = s.mlp_bias = c.boolean_or("use_bias", false);
  s.ropes = {read_rope(c, s.heads.head_dim, s.max_length, {.theta = 500000, .interleaved = true})};
  return s;
}

DecoderArchitecture read_helium(ModelConfig& c) {
  DecoderArchitecture s =
      read_usual(c, {.max_length = 4096, .kv_heads = 20, .head_dim = 128, .eps = 1e-8, .padding_row = 3});
  if (s.heads.n_head * s.heads.head_dim != s.width)
    c.fail("head_dim", "expected hidden_size / num_attention_heads");
  s.qkv_bias = c.boolean_or("attention_bias", false);
  s.mlp_bias = c.boolean_or("mlp_bias", false);
  s.ropes = {read_rope(c, s.heads.head_dim, s.max_length, {.theta = 100000, .interleaved = true})};
  return s;
}

}  // namespace redco
