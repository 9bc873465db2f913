// Mamba (Gu & Dao 2023) and Falcon-Mamba (TII 2024): layers of one branch each, a selective state space
// (models/selective_mixer.h). Jamba (AI21 2024): the same mixer and attention without positions in turn, an
// MLP or a mixture in each layer.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "models/decoder/families.h"
#include "models/decoder/read.h"

namespace redco {

namespace {

// "auto" or a number.
i64 read_step_rank(ModelConfig& c, const std::string& key, i64 width) {
  return c.has(key) && c.json(key) != "\"auto\"" ? c.integer(key) : ceil_div(width, 16);
}

// Whether layer i has the kind that begins at layer `offset` and returns after each period.
bool is_periodic(size_t i, i64 period, i64 offset) { return static_cast<i64>(i) % period == offset; }

void read_period(ModelConfig& c, const std::string& kind, i64* period, i64* offset) {
  *period = c.integer_or(kind + "_layer_period", *period);
  *offset = c.integer_or(kind + "_layer_offset", *offset, 0);
  if (*offset >= *period)
    c.fail(kind + "_layer_offset", fmt::format("expected less than {}_layer_period={}", kind, *period));
}

}  // namespace

DecoderArchitecture read_mamba(ModelConfig& c) {
  DecoderArchitecture s;
  s.family = c.text_or("model_type", "");
  s.vocab_size = c.integer("vocab_size");
  s.width = c.integer("hidden_size");
  s.layers.assign(c.integer("num_hidden_layers", 0), {.mixer = Mixer::selective, .mlp = false, .rope = -1});
  s.norm.eps = c.positive_or("layer_norm_epsilon", 1e-5);
  s.tied = c.boolean_or("tie_word_embeddings", true);
  s.std = c.number_or("initializer_range", 0.1);
  s.unlimited = true;
  s.max_length = 2048;
  s.states_after_layers = true;
  s.names.prefix = "backbone.";
  s.names.embedding = "embeddings";
  s.names.final_norm = "norm_f";
  s.names.attention_norm = "norm";
  s.names.selective = "mixer";

  SelectiveSettings m;
  const double expand = c.positive_or("expand", 2);
  m.inner = c.integer_or("intermediate_size", static_cast<i64>(expand * static_cast<double>(s.width)));
  m.state = c.integer_or("state_size", 16);
  m.rank = read_step_rank(c, "time_step_rank", s.width);
  m.taps = c.integer_or("conv_kernel", 4);
  m.bias = c.boolean_or("use_bias", false);
  m.conv_bias = c.boolean_or("use_conv_bias", true);
  m.activation = c.activation_or("hidden_act", "silu");
  m.std = s.std;
  if (s.family == "falcon_mamba") {
    m.norms = SelectiveSettings::Norms::plain;
    m.eps = c.positive_or("mixer_rms_eps", 1e-6);
  }
  const double low = c.positive_or("time_step_min", 0.001), high = c.positive_or("time_step_max", 0.1),
               floor = c.positive_or("time_step_floor", 1e-4);
  if (high < low) c.fail("time_step_max", fmt::format("expected at least time_step_min={}", low));
  m.steps = {.kind = Init::Kind::time_step, .low = std::max(low, floor), .high = std::max(high, floor)};
  if (c.boolean_or("rescale_prenorm_residual", false))
    m.out_scale = 1 / std::sqrt(static_cast<double>(s.layers.size()));
  // How transformers computes and draws initial weights.
  c.inert({"residual_in_fp32", "use_mambapy", "use_falcon_mambapy", "use_associative_scan", "time_step_scale",
           "time_step_init_scheme"});
  s.selective = m;
  return s;
}

DecoderArchitecture read_jamba(ModelConfig& c) {
  DecoderArchitecture s = read_usual(c, {.max_length = 262144, .kv_heads = 8, .padding_row = 0});
  DecoderNames& n = s.names;
  n.final_norm = "final_layernorm";
  n.mlp_norm = "pre_ff_layernorm";
  n.gate = "feed_forward.gate_proj";
  n.up = "feed_forward.up_proj";
  n.down = "feed_forward.down_proj";
  n.selective = "mamba";
  s.unlimited = true;  // no positions

  SelectiveSettings m;
  m.inner = c.integer_or("mamba_expand", 2) * s.width;
  m.state = c.integer_or("mamba_d_state", 16);
  m.rank = read_step_rank(c, "mamba_dt_rank", s.width);
  m.taps = c.integer_or("mamba_d_conv", 4);
  m.bias = c.boolean_or("mamba_proj_bias", false);
  m.conv_bias = c.boolean_or("mamba_conv_bias", true);
  m.activation = s.activation;
  m.norms = SelectiveSettings::Norms::weighted;
  m.eps = s.norm.eps;
  m.std = s.std;
  s.selective = m;
  c.inert({"use_mamba_kernels", "use_mambapy", "use_associative_scan", "num_logits_to_keep"});

  MixtureSettings e;
  e.count = c.integer_as_or({"num_experts", "num_local_experts"}, 16);
  e.activation = read_expert_activation(c, s.activation);
  if (e.count > 1) {
    read_router(c, e, "num_experts", 2);
  } else {
    c.inert({"num_experts_per_tok", "output_router_logits", "router_aux_loss_coef"});
  }
  e.inner = s.inner;
  e.router = "feed_forward.router";
  e.experts = e.computed_experts = "feed_forward.experts";
  i64 attention_period = 8, attention_offset = 4, expert_period = 2, expert_offset = 1;
  read_period(c, "attn", &attention_period, &attention_offset);
  read_period(c, "expert", &expert_period, &expert_offset);
  for (size_t i = 0; i < s.layers.size(); ++i) {
    const bool attention = is_periodic(i, attention_period, attention_offset);
    s.layers[i] = {.mixer = attention ? Mixer::attention : Mixer::selective,
                   .rope = -1,
                   .mixture = e.count > 1 && is_periodic(i, expert_period, expert_offset)};
  }
  if (e.count > 1) s.mixture = e;
  return s;
}

}  // namespace redco
