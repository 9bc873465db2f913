// Hunyuan (Tencent 2025): LLaMA with norms of the heads after rotary positions. The mixture has an MLP of the
// experts' width that all tokens share. Hy3 (2026): norms before rotary positions, and a mixture with sigmoid
// scores.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "models/decoder/families.h"
#include "models/decoder/read.h"

namespace redco {

namespace {

// moe_topk: a number, or one for each layer.
i64 read_experts_per_token(ModelConfig& c) {
  const nlohmann::json list = nlohmann::json::parse(c.json("moe_topk"));
  if (!list.is_array()) return c.integer_or("moe_topk", 1);
  for (const nlohmann::json& n : list)
    if (!n.is_number_integer() || n < 1 || n != list[0])
      c.fail("moe_topk", "not supported; supported: the same number of experts in all layers");
  if (list.empty()) c.fail("moe_topk", "expected a number, or one for each layer");
  return list[0].get<i64>();
}

}  // namespace

DecoderArchitecture read_hunyuan(ModelConfig& c) {
  DecoderArchitecture s = read_usual(c, {.max_length = 2048, .eps = 1e-5, .padding_row = 0});
  s.qkv_bias = s.out_bias = c.boolean_or("attention_bias", false);
  s.head_norms = {.over = HeadNormSettings::Over::head, .norm = s.norm, .after_rope = true};
  s.names.q_norm = "self_attn.query_layernorm";
  s.names.k_norm = "self_attn.key_layernorm";
  s.ropes = {read_rope(c, s.heads.head_dim, s.max_length, {.alpha = true})};
  if (s.family == "hunyuan_v1_dense") return s;
  MixtureSettings m;
  m.activation = read_expert_activation(c, s.activation);
  m.count = c.integer_or("num_experts", 1);
  m.per_token = read_experts_per_token(c);
  read_router(c, m, "num_experts", 1, std::nullopt);
  m.inner = m.shared_inner = s.inner;
  m.normalized = true;
  m.router = "mlp.gate.wg";
  m.shared = "mlp.shared_mlp";
  for (DecoderLayer& l : s.layers) l.mixture = true;
  s.mixture = m;
  return s;
}

DecoderArchitecture read_hy_v3(ModelConfig& c) {
  DecoderArchitecture s = read_usual(c, {.max_length = 131072, .kv_heads = 8, .head_dim = 128, .eps = 1e-5});
  s.qkv_bias = s.out_bias = c.boolean_or("attention_bias", false);
  s.mlp_bias = c.boolean_or("mlp_bias", false);
  s.head_norms = {HeadNormSettings::Over::head, s.norm};
  s.ropes = {read_rope(c, s.heads.head_dim, s.max_length, {.theta = 11158840})};
  MixtureSettings m;
  m.activation = read_expert_activation(c, s.activation);
  m.count = c.integer_as_or({"num_experts", "num_local_experts"}, 192);
  read_router(c, m, "num_experts", 8, std::nullopt);
  m.inner = c.integer_or("moe_intermediate_size", 1536);
  m.sigmoid = m.normalized = true;
  m.sum_eps = 1e-20;
  m.scale = c.number_or("router_scaling_factor", 2.826);
  m.router = "mlp.router.gate";
  m.computed_router = "mlp.gate";
  m.correction = "mlp.expert_bias";
  m.shared = "mlp.shared_mlp";
  m.shared_inner = m.inner * c.integer_or("num_shared_experts", 1);
  m.shared_bias = s.mlp_bias;
  read_sparse_layers(c, s, 1);
  s.mixture = m;
  s.extra_layers = true;  // layers that predict later tokens, which transformers skips too
  c.inert({"enable_moe_fp32_combine"});
  return s;
}

}  // namespace redco
