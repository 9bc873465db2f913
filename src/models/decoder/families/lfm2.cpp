// LFM2 (Liquid AI 2025): short convolutions and attention by a list of layers. lfm2_moe: mixtures in all but
// the first layers.
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "models/decoder/families.h"
#include "models/decoder/read.h"

namespace redco {

namespace {

// layer_types, or full_attn_idxs of the first version; without both, all layers attend.
void read_conv_layers(ModelConfig& c, DecoderArchitecture& s) {
  const nlohmann::json attends = nlohmann::json::parse(c.json("full_attn_idxs"));
  if (!attends.is_null() && !attends.is_array()) c.fail("full_attn_idxs", "expected a list of layers");
  const std::vector<Mixer> mixers =
      read_mixers(c, static_cast<i64>(s.layers.size()), {"layer_types"}, Mixer::conv);
  for (size_t i = 0; i < s.layers.size(); ++i) {
    bool listed = attends.is_null();
    for (const nlohmann::json& layer : attends) listed = listed || layer == i;
    s.layers[i].mixer = c.has("layer_types") ? mixers[i] : listed ? Mixer::attention : Mixer::conv;
  }
}

// block_ff_dim and tie_embedding are the names of the first version, and take precedence.
i64 read_inner(ModelConfig& c, i64 given) {
  i64 inner = c.integer_or("block_ff_dim", given);
  if (!c.boolean_or("block_auto_adjust_ff_dim", true)) return inner;
  inner = 2 * inner / 3;
  const double factor = c.positive_or("block_ffn_dim_multiplier", 1);
  const i64 unit = c.integer_or("block_multiple_of", 256);
  if (c.mentions("block_ffn_dim_multiplier") && !c.has("block_ffn_dim_multiplier")) return inner;
  inner = static_cast<i64>(factor * static_cast<double>(inner));
  return (inner + unit - 1) / unit * unit;
}

MixtureSettings read_lfm2_mixture(ModelConfig& c) {
  MixtureSettings m;
  m.count = c.integer_as_or({"num_experts", "num_local_experts"}, 32);
  read_router(c, m, "num_experts", 4, std::nullopt);
  m.inner = c.integer_or("moe_intermediate_size", 1792);
  m.sigmoid = true;
  m.normalized = c.boolean_or("norm_topk_prob", true);
  m.sum_eps = 1e-6;
  m.scale = c.number_or("routed_scaling_factor", 1);
  if (c.boolean_or("use_expert_bias", true)) m.correction = "feed_forward.expert_bias";
  m.router = "feed_forward.gate";
  m.experts = m.computed_experts = "feed_forward.experts";
  m.gate = "w1";
  m.up = "w3";
  m.down = "w2";
  return m;
}

}  // namespace

DecoderArchitecture read_lfm2(ModelConfig& c) {
  DecoderDefaults d = {.max_length = 128000,
                       .kv_heads = 8,
                       .eps_key = "norm_eps",
                       .eps = 1e-5,
                       .tied = true,
                       .padding_row = 0,
                       .activation = nullptr};
  if (c.has("block_ff_dim")) d.inner = c.integer("block_ff_dim");
  DecoderArchitecture s = read_usual(c, d);
  s.tied = c.boolean_or("tie_embedding", s.tied);
  s.attention_dropout = 0;  // transformers reads no rate
  DecoderNames& n = s.names;
  n.final_norm = "embedding_norm";
  n.attention_norm = "operator_norm";
  n.mlp_norm = "ffn_norm";
  n.out = "self_attn.out_proj";
  n.q_norm = "self_attn.q_layernorm";
  n.k_norm = "self_attn.k_layernorm";
  n.gate = "feed_forward.w1";
  n.up = "feed_forward.w3";
  n.down = "feed_forward.w2";
  s.head_norms = {HeadNormSettings::Over::head, s.norm};
  s.ropes = {read_rope(c, s.heads.head_dim, s.max_length, {.theta = 1e6})};
  s.conv = {.taps = c.integer_or("conv_L_cache", 3), .bias = c.boolean_or("conv_bias", false), .std = s.std};
  read_conv_layers(c, s);
  if (s.family == "lfm2") {
    s.inner = read_inner(c, s.inner);
    return s;
  }
  s.mixture = read_lfm2_mixture(c);
  const i64 dense = c.integer_or("num_dense_layers", 2, 0);
  for (size_t i = 0; i < s.layers.size(); ++i) s.layers[i].mixture = static_cast<i64>(i) >= dense;
  return s;
}

}  // namespace redco
