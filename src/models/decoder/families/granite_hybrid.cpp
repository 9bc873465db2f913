// Granite 4 (IBM 2025): Mamba-2 and attention by a list of layers, Granite's multipliers, an MLP that all
// tokens share and, in larger models, a mixture of experts. Bamba (IBM, Princeton, CMU and UIUC 2024): the
// same mixers with rotary positions on half of each head.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/log_once.h"
#include "models/decoder/families.h"
#include "models/decoder/read.h"

namespace redco {

MambaSettings read_mamba_keys(ModelConfig& c, const DecoderArchitecture& s, i64 given_inner) {
  MambaSettings m;
  const i64 expanded = c.integer_or("mamba_expand", 2) * s.width;
  const i64 inner = given_inner > 0 ? given_inner : expanded;
  m.heads = c.integer_or("mamba_n_heads", 128);
  const bool given = c.has("mamba_d_head") && c.json("mamba_d_head") != "\"auto\"";
  m.head_dim = given ? c.integer("mamba_d_head") : inner / m.heads;
  if (m.heads * m.head_dim != inner)
    c.fail("mamba_n_heads",
           given_inner > 0
               ? fmt::format("{} heads of mamba_d_head={} are not mamba_d_ssm={}", m.heads, m.head_dim, inner)
               : fmt::format("{} heads of mamba_d_head={} are not mamba_expand times hidden_size={}", m.heads,
                             m.head_dim, s.width));
  m.groups = c.integer_or("mamba_n_groups", 1);
  if (m.heads % m.groups != 0)
    c.fail("mamba_n_groups", fmt::format("expected a divisor of mamba_n_heads={}", m.heads));
  m.state = c.integer_or("mamba_d_state", 256);
  m.taps = c.integer_or("mamba_d_conv", 4);
  m.bias = c.boolean_or("mamba_proj_bias", false);
  m.conv_bias = c.boolean_or("mamba_conv_bias", true);
  m.activation = s.activation;
  m.eps = s.norm.eps;
  m.std = s.std;
  read_step_limit(c, m);
  c.inert({"mamba_chunk_size"});
  return m;
}

DecoderArchitecture read_granite_hybrid(ModelConfig& c) {
  DecoderArchitecture s = read_granite_with(c, {.max_length = 2048});
  s.mamba = read_mamba_keys(c, s);
  const bool rope = c.text_or("position_embedding_type", "") == "rope";
  if (!rope) s.ropes = {};
  s.unlimited = !rope;
  const std::vector<Mixer> mixers =
      read_mixers(c, static_cast<i64>(s.layers.size()), {"layer_types", "layers_block_type"}, Mixer::mamba);
  for (size_t i = 0; i < s.layers.size(); ++i) {
    s.layers[i].mixer = mixers[i];
    s.layers[i].rope = rope ? 0 : -1;
  }
  read_granite_mixture(c, s, c.integer_or("shared_intermediate_size", 1024));
  return s;
}

DecoderArchitecture read_bamba(ModelConfig& c) {
  DecoderArchitecture s = read_usual(c, {.max_length = 262144, .kv_heads = 8, .eps = 1e-5});
  s.names.mlp_norm = "pre_ff_layernorm";
  s.names.final_norm = "final_layernorm";
  s.names.gate = "feed_forward.gate_proj";
  s.names.up = "feed_forward.up_proj";
  s.names.down = "feed_forward.down_proj";
  s.qkv_bias = s.out_bias = c.boolean_or("attention_bias", false);
  s.mlp_bias = c.boolean_or("mlp_bias", false);
  s.ropes = {
      read_rope(c, s.heads.head_dim, s.max_length, {.share_key = "partial_rotary_factor", .share = 0.5})};
  s.mamba = read_mamba_keys(c, s);
  for (DecoderLayer& l : s.layers) l.mixer = Mixer::mamba;
  const nlohmann::json attends = nlohmann::json::parse(c.json("attn_layer_indices"));
  if (!attends.is_null() && !attends.is_array()) c.fail("attn_layer_indices", "expected a list of layers");
  for (const nlohmann::json& i : attends) {
    if (!i.is_number_integer() || i < 0 || i >= s.layers.size())
      c.fail("attn_layer_indices",
             fmt::format("expected numbers below num_hidden_layers={}", s.layers.size()));
    s.layers[i.get<size_t>()].mixer = Mixer::attention;
  }
  if (c.number_or("z_loss_coefficient", 0) != 0)
    log_once(
        LogLevel::info,
        "[model] z_loss_coefficient: the z-loss is not supported, so the training loss does not contain it");
  return s;
}

}  // namespace redco
