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

i64 read_head_width(ModelConfig& c, const char* heads_key, i64 H, const char* width_key, i64 width) {
  if (width % H != 0) c.fail(heads_key, fmt::format("expected a divisor of {}={}", width_key, width));
  return width / H;
}

std::vector<bool> read_sliding_layers(ModelConfig& c, i64 n_layers, bool* given) {
  const nlohmann::json types = nlohmann::json::parse(c.json("layer_types"));
  *given = !types.is_null();
  std::vector<bool> slides(n_layers);
  if (!*given) return slides;
  if (!types.is_array() || static_cast<i64>(types.size()) != n_layers)
    c.fail("layer_types", fmt::format("expected a list of num_hidden_layers={} texts", n_layers));
  for (i64 i = 0; i < n_layers; ++i) {
    if (types[i] != "sliding_attention" && types[i] != "full_attention")
      c.fail("layer_types", "supported: full_attention, sliding_attention");
    slides[i] = types[i] == "sliding_attention";
  }
  return slides;
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
      if (!attends && types[i] != "linear_attention" && types[i] != "mamba")
        c.fail(name, "supported: full_attention, linear_attention");
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

kernels::Unary read_expert_activation(ModelConfig& c, const std::string& name) {
  const std::optional<kernels::Unary> op = unary_activation(name);
  if (!op) c.fail("hidden_act", fmt::format("'{}' is not supported inside experts", name));
  return *op;
}

void read_router(ModelConfig& c, MixtureSettings& m, const char* count_key, i64 per_token) {
  m.per_token = c.integer_or("num_experts_per_tok", per_token);
  if (m.per_token > m.count)
    c.fail("num_experts_per_tok", fmt::format("expected at most {}={}", count_key, m.count));
  // True adds a loss that balances the experts to the training loss; router_aux_loss_coef is its weight. The
  // logits stay the same, and published configs contain both values.
  if (c.boolean_or("output_router_logits", false))
    log_once(
        LogLevel::info,
        "[model] output_router_logits=true: the load-balancing loss of the experts is not supported, so the "
        "training loss does not contain it");
  c.inert({"router_aux_loss_coef"});
}

}  // namespace redco
