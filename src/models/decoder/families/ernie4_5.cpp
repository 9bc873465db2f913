// ERNIE 4.5 (Baidu 2025) and Helium (Kyutai 2025): LLaMA with rotary positions in interleaved pairs. ERNIE's
// mixture chooses experts by corrected scores.
#include "models/decoder/families.h"
#include "models/decoder/read.h"

namespace redco {

namespace {

DecoderArchitecture read_ernie_with(ModelConfig& c, i64 kv_heads, i64 head_dim) {
  DecoderArchitecture s = read_usual(c, {.max_length = 131072,
                                         .kv_heads = kv_heads,
                                         .head_dim = head_dim,
                                         .eps = 1e-5,
                                         .tied = true,
                                         .padding_row = 0});
  s.attention_dropout = 0;  // transformers reads no rate
  s.qkv_bias = s.out_bias = s.mlp_bias = c.boolean_or("use_bias", false);
  s.ropes = {read_rope(c, s.heads.head_dim, s.max_length, {.theta = 500000, .interleaved = true})};
  return s;
}

MixtureSettings read_ernie_mixture(ModelConfig& c, const DecoderArchitecture& s) {
  MixtureSettings m;
  m.activation = read_expert_activation(c, s.activation);
  m.count = c.integer_or("moe_num_experts", 64);
  m.per_token = c.integer_or("moe_k", 6);
  read_router(c, m, "moe_num_experts", 6);
  m.inner = c.integer_or("moe_intermediate_size", 1536);
  m.shared = "mlp.shared_experts";
  m.shared_inner = m.inner * c.integer_or("moe_num_shared_experts", 2, 0);
  m.shared_bias = s.mlp_bias;
  m.normalized = true;
  m.least_sum = c.number_or("moe_norm_min", 1e-12);
  m.correction = "mlp.moe_statics.e_score_correction_bias";
  m.correction_row = true;
  return m;
}

}  // namespace

DecoderArchitecture read_ernie4_5(ModelConfig& c) { return read_ernie_with(c, 2, 128); }

DecoderArchitecture read_ernie4_5_moe(ModelConfig& c) {
  DecoderArchitecture s = read_ernie_with(c, 4, 0);
  s.head_bias = s.mlp_bias;
  s.mixture = read_ernie_mixture(c, s);
  const i64 n = static_cast<i64>(s.layers.size()), step = c.integer_or("moe_layer_interval", 1);
  const i64 first = c.integer_or("moe_layer_start_index", 1, 0),
            last = c.integer_or("moe_layer_end_index", -1, -1);
  for (i64 i = 0; i < n; ++i)
    s.layers[i].mixture = (i + 1) % step == 0 && i >= first && (last < 0 || i <= last);
  s.names.other_parts = {"mtp"};  // layers that predict later tokens, which transformers skips too
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
