// Falcon-H1 (TII 2025): Mamba-2 and attention side by side in each layer, and multipliers of nearly all
// products.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "models/decoder/families.h"
#include "models/decoder/read.h"

namespace redco {

namespace {

std::vector<double> read_multipliers(ModelConfig& c, const std::string& key, size_t count) {
  const nlohmann::json list = nlohmann::json::parse(c.json(key));
  if (list.is_null()) return std::vector<double>(count, 1);
  bool fits = list.is_array() && list.size() == count;
  for (const nlohmann::json& x : list) fits = fits && x.is_number();
  if (!fits) c.fail(key, fmt::format("expected a list of {} numbers", count));
  return list.get<std::vector<double>>();
}

}  // namespace

DecoderArchitecture read_falcon_h1(ModelConfig& c) {
  DecoderArchitecture s = read_usual(c, {.max_length = 8192, .kv_heads = 8, .eps = 1e-5, .padding_row = 0});
  DecoderNames& n = s.names;
  n.mlp_norm = "pre_ff_layernorm";
  n.final_norm = "final_layernorm";
  n.gate = "feed_forward.gate_proj";
  n.up = "feed_forward.up_proj";
  n.down = "feed_forward.down_proj";
  s.qkv_bias = s.out_bias = c.boolean_or("attention_bias", false);
  s.mlp_bias = c.boolean_or("mlp_bias", false);
  s.ropes = {read_rope(c, s.heads.head_dim, s.max_length)};
  s.embedding_scale = c.number_or("embedding_multiplier", 1);
  s.logit_scale = c.number_or("lm_head_multiplier", 1);
  s.score_scale *= c.number_or("key_multiplier", 1);
  s.attention_in_scale = c.number_or("attention_in_multiplier", 1);
  s.attention_out_scale = c.number_or("attention_out_multiplier", 1);
  const std::vector<double> mlp = read_multipliers(c, "mlp_multipliers", 2);
  s.gate_scale = mlp[0];
  s.mlp_out_scale = mlp[1];
  MambaSettings m =
      read_mamba_keys(c, s, c.integer_or("mamba_d_ssm", c.mentions("mamba_d_ssm") ? 0 : 1024, 0));
  m.input_scale = c.number_or("ssm_in_multiplier", 1);
  m.output_scale = c.number_or("ssm_out_multiplier", 1);
  m.part_scales = read_multipliers(c, "ssm_multipliers", 5);
  m.normed = c.boolean_or("mamba_rms_norm", false);
  m.gate_after_norm = c.boolean_or("mamba_norm_before_gate", true);
  m.out_bias = c.boolean_or("projectors_bias", false);
  s.mamba = m;
  for (DecoderLayer& l : s.layers) l.mixer = Mixer::attention_and_mamba;
  return s;
}

}  // namespace redco
