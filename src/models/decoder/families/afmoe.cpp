// AFMoE (Arcee AI 2025, Trinity): norms before and after each part, windows with rotary positions in three of
// four layers, gated attention, and a mixture with sigmoid scores.
#include <cmath>

#include "models/decoder/families.h"
#include "models/decoder/read.h"

namespace redco {

DecoderArchitecture read_afmoe(ModelConfig& c) {
  DecoderArchitecture s = read_usual(c, {.max_length = 16384, .head_dim = 128, .eps = 1e-5});
  s.names.attention_out_norm = "post_attention_layernorm";
  s.names.mlp_norm = "pre_mlp_layernorm";
  s.names.mlp_out_norm = "post_mlp_layernorm";
  s.names.attention_gate = "self_attn.gate_proj";
  s.gated_attention = true;
  s.qkv_bias = s.out_bias = c.boolean_or("attention_bias", false);
  s.head_norms = {HeadNormSettings::Over::head, s.norm};
  s.ropes = {read_rope(c, s.heads.head_dim, s.max_length)};
  if (c.boolean_or("mup_enabled", false)) s.embedding_scale = std::sqrt(static_cast<double>(s.width));
  const i64 window = read_window(c, 1024), dense = c.integer_or("num_dense_layers", 1, 0);
  const i64 every = c.integer_or("global_attn_every_n_layers", 4);
  const std::vector<bool> slides = read_sliding_layers_or(c, static_cast<i64>(s.layers.size()), every);
  for (size_t i = 0; i < slides.size(); ++i)
    s.layers[i] = {.window = slides[i] ? window : 0,
                   .rope = slides[i] ? 0 : -1,
                   .mixture = static_cast<i64>(i) >= dense};
  MixtureSettings m;
  m.activation = read_expert_activation(c, s.activation);
  m.count = c.integer_or("num_experts", 64);
  read_router(c, m, "num_experts", 6, std::nullopt);
  m.inner = c.integer_or("moe_intermediate_size", 1408);
  m.sigmoid = m.normalized = true;
  m.sum_eps = 1e-20;
  m.scale = c.number_or("route_scale", 1);
  m.router = "mlp.router.gate";
  m.correction = "mlp.expert_bias";
  m.shared = "mlp.shared_experts";
  m.shared_inner = m.inner * c.integer_or("num_shared_experts", 2);
  s.mixture = m;
  return s;
}

}  // namespace redco
