#include "models/decoder/read.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/log_once.h"
#include "nn/activations.h"

namespace redco {

DecoderArchitecture read_usual(ModelConfig& c, const DecoderDefaults& d) {
  DecoderArchitecture s;
  const auto size = [&](const char* key, i64 fallback, i64 least = 1) {
    return fallback > 0 ? c.integer_or(key, fallback, least) : c.integer(key, least);
  };
  s.family = c.text_or("model_type", "");
  s.vocab_size = size("vocab_size", d.vocab_size);
  s.padding_row = c.padding_row(s.vocab_size);
  if (!c.mentions("pad_token_id") && d.padding_row < s.vocab_size) s.padding_row = d.padding_row;
  s.max_length = c.integer_or("max_position_embeddings", d.max_length);
  s.width = size("hidden_size", d.width);
  s.inner = size("intermediate_size", d.inner);
  s.layers.resize(size("num_hidden_layers", d.layers, 0));

  const i64 H = size("num_attention_heads", d.heads);
  const bool absent = !c.mentions("num_key_value_heads");
  const i64 K = d.grouped ? c.integer_or("num_key_value_heads", absent && d.kv_heads ? d.kv_heads : H) : H;
  if (H % K != 0)
    c.fail("num_key_value_heads", fmt::format("expected a divisor of num_attention_heads={}", H));
  if (!c.has("head_dim") && !d.head_dim && s.width % H != 0)
    c.fail("num_attention_heads", fmt::format("expected a divisor of hidden_size={}", s.width));
  s.heads = {H, K, c.integer_or("head_dim", d.head_dim ? d.head_dim : s.width / H)};
  s.score_scale = 1 / std::sqrt(static_cast<double>(s.heads.head_dim));

  s.attention_dropout = c.rate_or("attention_dropout", 0);
  s.norm.eps = c.positive_or(d.eps_key, d.eps);
  s.tied = c.boolean_or("tie_word_embeddings", d.tied);
  s.std = s.residual_std = c.number_or("initializer_range", 0.02);
  if (d.activation) s.activation = c.activation_or("hidden_act", d.activation);
  return s;
}

ModelConfig text_part(ModelConfig& c, const std::string& model_type, const std::vector<std::string>& others) {
  ModelConfig text = c.part("text_config", model_type);
  c.inert({"vision_config", "image_token_id", "tie_word_embeddings", "initializer_range"});
  c.inert(others);
  c.finish();
  log_once(LogLevel::info,
           fmt::format("[model] {}: model_type {} has images and texts; only its text model is read, "
                       "and saved as {}",
                       c.source(), c.text_or("model_type", ""), model_type));
  return text;
}

i64 read_head_width(ModelConfig& c, const char* heads_key, i64 H, const char* width_key, i64 width) {
  if (width % H != 0) c.fail(heads_key, fmt::format("expected a divisor of {}={}", width_key, width));
  return width / H;
}

std::vector<bool> read_sliding_layers(ModelConfig& c, i64 n_layers, bool* given, const char* kind) {
  const nlohmann::json types = nlohmann::json::parse(c.json("layer_types"));
  *given = !types.is_null();
  std::vector<bool> slides(n_layers);
  if (!*given) return slides;
  if (!types.is_array() || static_cast<i64>(types.size()) != n_layers)
    c.fail("layer_types", fmt::format("expected a list of num_hidden_layers={} texts", n_layers));
  for (i64 i = 0; i < n_layers; ++i) {
    slides[i] = types[i] == kind;
    if (!slides[i] && types[i] != "full_attention")
      c.fail("layer_types", fmt::format("supported: full_attention, {}", kind));
  }
  return slides;
}

std::vector<bool> read_rotated_layers(ModelConfig& c, i64 n_layers, bool empty_is_none) {
  const i64 interval = c.integer_or("no_rope_layer_interval", 4);
  const nlohmann::json list = nlohmann::json::parse(c.json("no_rope_layers"));
  const bool given = !list.is_null() && !(empty_is_none && list.is_array() && list.empty());
  if (given && (!list.is_array() || static_cast<i64>(list.size()) != n_layers))
    c.fail("no_rope_layers",
           fmt::format("expected a list of num_hidden_layers={} numbers, 0 or 1", n_layers));
  std::vector<bool> rotated(n_layers);
  for (i64 i = 0; i < n_layers; ++i) {
    if (given && list[i] != 0 && list[i] != 1) c.fail("no_rope_layers", "expected 0 or 1 for each layer");
    rotated[i] = given ? list[i] == 1 : (i + 1) % interval != 0;
  }
  return rotated;
}

std::vector<bool> read_sliding_layers_or(ModelConfig& c, i64 n_layers, i64 pattern) {
  bool given;
  std::vector<bool> slides = read_sliding_layers(c, n_layers, &given);
  for (i64 i = 0; !given && pattern > 0 && i < n_layers; ++i) slides[i] = (i + 1) % pattern != 0;
  return slides;
}

void read_mixture_layers(ModelConfig& c, DecoderArchitecture& s) {
  const i64 step = c.integer_or("decoder_sparse_step", 1);
  const nlohmann::json dense = nlohmann::json::parse(c.json("mlp_only_layers"));
  if (!dense.is_null() && !dense.is_array()) c.fail("mlp_only_layers", "expected a list of layers");
  for (size_t i = 0; i < s.layers.size(); ++i) {
    bool listed = false;
    for (const nlohmann::json& layer : dense) listed = listed || layer == i;
    s.layers[i].mixture = !listed && (i + 1) % static_cast<size_t>(step) == 0;
  }
}

std::vector<Mixer> read_mixers(ModelConfig& c, i64 n_layers, const std::vector<std::string>& names,
                               Mixer recurrent) {
  std::vector<Mixer> mixers(n_layers, recurrent);
  for (const std::string& name : names) {
    const nlohmann::json types = nlohmann::json::parse(c.json(name));
    if (types.is_null()) continue;
    if (!types.is_array() || static_cast<i64>(types.size()) != n_layers)
      c.fail(name, fmt::format("expected a list of num_hidden_layers={} texts", n_layers));
    for (i64 i = 0; i < n_layers; ++i) {
      const bool attends = types[i] == "full_attention" || types[i] == "attention";
      const char* const kind = recurrent == Mixer::conv ? "conv" : "linear_attention";
      if (!attends && types[i] != kind && (recurrent == Mixer::conv || types[i] != "mamba"))
        c.fail(name, fmt::format("supported: full_attention, {}", kind));
      mixers[i] = attends ? Mixer::attention : recurrent;
    }
    break;
  }
  return mixers;
}

i64 read_window(ModelConfig& c, i64 fallback) {
  const i64 window = c.integer_or("sliding_window", c.mentions("sliding_window") ? 0 : fallback, 0);
  if (c.has("sliding_window") && window == 0) c.fail("sliding_window", "expected at least 1, or null");
  return window;
}

void read_window_of_all(ModelConfig& c, DecoderArchitecture& s, i64 fallback) {
  const i64 window = read_window(c, fallback);
  for (DecoderLayer& l : s.layers) l.window = window;
}

double read_cap(ModelConfig& c, const char* key, double fallback) {
  const bool none = c.mentions(key) && !c.has(key);
  const double cap = c.number_or(key, none ? 0 : fallback);
  if (c.has(key) && cap <= 0) c.fail(key, "expected a number above 0, or null");
  return cap;
}

kernels::Unary read_expert_activation(ModelConfig& c, const std::string& name) {
  const std::optional<kernels::Unary> op = unary_activation(name);
  if (!op) c.fail("hidden_act", fmt::format("'{}' is not supported inside experts", name));
  return *op;
}

void read_router(ModelConfig& c, MixtureSettings& m, const char* count_key, i64 per_token,
                 std::optional<double> balance) {
  if (m.per_token == 0) m.per_token = c.integer_or("num_experts_per_tok", per_token);
  if (m.per_token > m.count)
    c.fail("num_experts_per_tok", fmt::format("expected at most {}={}", count_key, m.count));
  const bool on = c.boolean_or("output_router_logits", false);
  const double coefficient = c.number_or("router_aux_loss_coef", balance.value_or(0));
  if (coefficient < 0) c.fail("router_aux_loss_coef", "expected 0 or a positive number");
  if (on && balance) m.balance = coefficient;
  // Published configs have a coefficient and no loss; a job that sets one expects it.
  if (!m.balance && c.overridden("router_aux_loss_coef"))
    log_once(LogLevel::info, fmt::format("[model] router_aux_loss_coef has no effect {}",
                                         balance ? "without output_router_logits: true"
                                                 : "for this family, which has no load-balancing loss"));
}

MixtureSettings read_block_sparse_moe(ModelConfig& c, DecoderArchitecture& s, const char* computed_router,
                                      i64 count, i64 per_token) {
  MixtureSettings m;
  m.activation = read_expert_activation(c, s.activation);
  m.count = c.integer_as_or({"num_local_experts", "num_experts"}, count);
  read_router(c, m, "num_local_experts", per_token);
  m.inner = s.inner;
  m.router = "block_sparse_moe.gate";
  m.computed_router = computed_router;
  m.experts = "block_sparse_moe.experts";
  m.gate = "w1";
  m.up = "w3";
  m.down = "w2";
  for (DecoderLayer& l : s.layers) l.mixture = true;
  return m;
}

void read_groups(ModelConfig& c, MixtureSettings& m, bool limited) {
  const i64 groups = c.integer_or("n_group", 1), kept = c.integer_or("topk_group", 1);
  if (!limited) return;
  m.groups = groups;
  m.chosen_groups = kept;
  if (m.count % groups != 0) c.fail("n_group", "expected a divisor of n_routed_experts");
  if (kept > groups) c.fail("topk_group", "expected at most n_group");
  if (kept * (m.count / groups) < m.per_token)
    c.fail("topk_group", "the chosen groups have fewer experts than num_experts_per_tok");
}

MixtureSettings read_sigmoid_mixture(ModelConfig& c, const std::string& activation,
                                     const SigmoidMixtureDefaults& d) {
  MixtureSettings m;
  m.activation = read_expert_activation(c, activation);
  m.count = c.integer_as_or({d.count_key, "num_local_experts"}, d.count);
  read_router(c, m, d.count_key, d.per_token, std::nullopt);
  m.inner = c.integer_or("moe_intermediate_size", d.inner);
  m.scale = c.number_or("routed_scaling_factor", d.scale);
  m.shared = "mlp.shared_experts";
  m.shared_inner = m.inner * c.integer_or(d.shared_key, 1);
  m.sigmoid = true;
  m.correction = "mlp.gate.e_score_correction_bias";
  m.normalized = c.boolean_or("norm_topk_prob", d.normalized);
  m.sum_eps = 1e-20;
  m.group_best = 2;
  read_groups(c, m, true);
  if (m.groups > 1 && m.count / m.groups < 2) c.fail("n_group", "expected at least 2 experts in a group");
  return m;
}

void read_dense_layers(ModelConfig& c, DecoderArchitecture& s, i64 fallback) {
  const i64 dense = c.integer_or("first_k_dense_replace", fallback, 0);
  for (size_t i = 0; i < s.layers.size(); ++i) s.layers[i].mixture = static_cast<i64>(i) >= dense;
}

void read_sparse_layers(ModelConfig& c, DecoderArchitecture& s, i64 dense) {
  const nlohmann::json types = nlohmann::json::parse(c.json("mlp_layer_types"));
  if (!types.is_null() && (!types.is_array() || types.size() != s.layers.size()))
    c.fail("mlp_layer_types", fmt::format("expected a list of num_hidden_layers={} texts", s.layers.size()));
  for (size_t i = 0; i < s.layers.size(); ++i) {
    if (!types.is_null() && types[i] != "dense" && types[i] != "sparse")
      c.fail("mlp_layer_types", "supported: dense, sparse");
    s.layers[i].mixture = types.is_null() ? static_cast<i64>(i) >= dense : types[i] == "sparse";
  }
}

}  // namespace redco
