// Nemotron-H (NVIDIA 2025) and Nemotron 3: layers of one branch each, which is Mamba-2, attention without
// positions, an MLP with squared ReLU, or a mixture of such MLPs.
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/log_once.h"
#include "models/decoder/families.h"
#include "models/decoder/read.h"

namespace redco {

namespace {

// layers_block_type, or hybrid_override_pattern: M Mamba-2, * attention, - MLP, E mixture.
std::vector<std::string> read_block_types(ModelConfig& c) {
  using nlohmann::json;
  const json pattern = json::parse(c.json("hybrid_override_pattern"));
  json types = json::parse(c.json("layers_block_type"));
  if (types.is_null()) types = json::parse(c.json("layer_types"));
  std::vector<std::string> out;
  if (types.is_null() && pattern.is_string()) {
    for (const char letter : pattern.get<std::string>()) {
      const std::string kinds = "M*-E";
      const size_t at = kinds.find(letter);
      if (at == kinds.npos) c.fail("hybrid_override_pattern", "expected the letters M, *, - and E");
      out.push_back(std::vector<std::string>{"linear_attention", "full_attention", "mlp", "moe"}[at]);
    }
    return out;
  }
  if (types.is_null() && !c.require("layers_block_type")) return {"mlp"};
  if (!types.is_array()) c.fail("layers_block_type", "expected a list of texts");
  for (const json& t : types) out.push_back(t.is_string() ? t.get<std::string>() : t.dump());
  return out;
}

void read_block_layers(ModelConfig& c, DecoderArchitecture& s) {
  const std::vector<std::string> types = read_block_types(c);
  const i64 count = static_cast<i64>(types.size());
  if (c.integer_or("num_hidden_layers", count, 0) != count)
    log_once(LogLevel::info,
             fmt::format("[model] num_hidden_layers is ignored: the list of layers has {}", count));
  s.layers.assign(types.size(), {.rope = -1});
  for (size_t i = 0; i < types.size(); ++i) {
    DecoderLayer& l = s.layers[i];
    const std::string& t = types[i];
    l.mlp = t == "mlp" || t == "moe";
    l.mixture = t == "moe";
    if (l.mlp) {
      l.mixer = Mixer::none;
    } else if (t == "linear_attention" || t == "mamba") {
      l.mixer = Mixer::mamba;
    } else if (t != "full_attention" && t != "attention") {
      c.fail("layers_block_type", "supported: linear_attention, full_attention, mlp, moe");
    }
  }
}

MambaSettings read_mamba_of_nemotron(ModelConfig& c, const DecoderArchitecture& s) {
  MambaSettings m;
  m.heads = c.integer_or("mamba_num_heads", 128);
  m.head_dim = c.integer_or("mamba_head_dim", 64);
  m.groups = c.integer_as_or({"n_groups", "mamba_n_groups"}, 8);
  if (m.heads % m.groups != 0)
    c.fail("n_groups", fmt::format("expected a divisor of mamba_num_heads={}", m.heads));
  m.state = c.integer_or("ssm_state_size", 128);
  m.taps = c.integer_as_or({"conv_kernel", "mamba_d_conv"}, 4);
  m.bias = c.boolean_or("use_bias", false);
  m.conv_bias = c.boolean_or("use_conv_bias", true);
  m.activation = c.activation_or("mamba_hidden_act", "silu");
  m.eps = s.norm.eps;
  m.std = s.std;
  const double low = c.positive_or("time_step_min", 0.001), high = c.positive_or("time_step_max", 0.1),
               floor = c.positive_or("time_step_floor", 1e-4);
  if (high < low) c.fail("time_step_max", fmt::format("expected at least time_step_min={}", low));
  m.steps = {.kind = Init::Kind::time_step, .low = std::max(low, floor), .high = std::max(high, floor)};
  m.least_step = low;  // transformers computes with this limit, and not with time_step_limit
  if (c.boolean_or("rescale_prenorm_residual", true))
    m.out_scale = 1 / std::sqrt(static_cast<double>(s.layers.size()));
  c.inert(
      {"time_step_limit", "chunk_size", "mamba_chunk_size", "residual_in_fp32", "expand", "mamba_expand"});
  return m;
}

MixtureSettings read_mixture_of_nemotron(ModelConfig& c) {
  MixtureSettings m;
  m.count = c.integer_as_or({"n_routed_experts", "num_local_experts"}, 8);
  read_router(c, m, "n_routed_experts", 2, std::nullopt);
  m.inner = c.integer_or("moe_intermediate_size", 7688);
  m.gated = false;
  m.activation = kernels::Unary::relu;
  m.sigmoid = true;
  m.normalized = c.boolean_or("norm_topk_prob", true);
  m.sum_eps = 1e-20;
  m.scale = c.number_or("routed_scaling_factor", 1);
  m.groups = c.integer_or("n_group", 1);
  m.chosen_groups = c.integer_or("topk_group", 1);
  m.group_best = 2;
  if (m.count % m.groups != 0 || m.count / m.groups < 2)
    c.fail("n_group", "expected a divisor of n_routed_experts, with at least 2 experts in a group");
  if (m.chosen_groups > m.groups) c.fail("topk_group", "expected at most n_group");
  if (m.chosen_groups * (m.count / m.groups) < m.per_token)
    c.fail("topk_group", "the chosen groups have fewer experts than num_experts_per_tok");
  m.latent = c.integer_or("moe_latent_size", 0);
  m.latent_bias = m.shared_bias = c.boolean_or("mlp_bias", false);
  m.shared_inner = c.integer_or("moe_shared_expert_intermediate_size", 7688);
  m.router = "mixer.gate";
  m.correction = "mixer.gate.e_score_correction_bias";
  m.experts = m.computed_experts = "mixer.experts";
  m.shared = "mixer.shared_experts";
  m.latent_in = "mixer.fc1_latent_proj";
  m.latent_out = "mixer.fc2_latent_proj";
  return m;
}

}  // namespace

DecoderArchitecture read_nemotron_h(ModelConfig& c) {
  DecoderArchitecture s = read_usual(c, {.layers = 1,
                                         .max_length = 4096,
                                         .kv_heads = 8,
                                         .head_dim = c.integer_or("attention_head_dim", 128),
                                         .eps_key = "layer_norm_epsilon",
                                         .eps = 1e-5,
                                         .activation = nullptr});
  DecoderNames& n = s.names;
  n.prefix = "backbone.";
  n.embedding = "embeddings";
  n.final_norm = "norm_f";
  n.attention_norm = n.mlp_norm = "norm";
  n.q = "mixer.q_proj";
  n.k = "mixer.k_proj";
  n.v = "mixer.v_proj";
  n.out = "mixer.o_proj";
  n.mamba = "mixer";
  n.up = "mixer.up_proj";
  n.down = "mixer.down_proj";
  n.other_parts = {"mtp."};  // layers that predict later tokens, which transformers skips too
  s.activation = c.activation_or("mlp_hidden_act", "relu2");
  s.gated = false;
  s.mlp_bias = c.boolean_or("mlp_bias", false);
  s.unlimited = true;  // no positions
  s.padding_row = -1;  // also pad_token_id has a gradient
  read_block_layers(c, s);
  s.mamba = read_mamba_of_nemotron(c, s);
  if (std::ranges::any_of(s.layers, &DecoderLayer::mixture)) {
    c.expect("mlp_hidden_act", {"\"relu2\""});
    s.mixture = read_mixture_of_nemotron(c);
  } else {
    c.inert({"n_routed_experts", "num_local_experts", "num_experts_per_tok", "moe_intermediate_size",
             "moe_shared_expert_intermediate_size", "moe_latent_size", "norm_topk_prob",
             "routed_scaling_factor", "n_group", "topk_group", "output_router_logits"});
  }
  const i64 window = read_window(c, 0);
  for (DecoderLayer& l : s.layers)
    if (l.mixer == Mixer::attention) l.window = window;
  c.inert({"mtp_layers_block_type", "mtp_hybrid_override_pattern", "num_nextn_predict_layers"});
  return s;
}

}  // namespace redco
