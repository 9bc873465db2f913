// Qwen1.5-MoE and Qwen2 mixtures (Yang et al. 2024): a mixture of experts and a gated MLP that all tokens
// share. Qwen3 mixtures (2025): norms of the heads, no shared MLP. Mellum 2 (JetBrains
// 2026): the same with windows and a second rotary base in listed layers.
#include "models/decoder/families.h"
#include "models/decoder/read.h"

namespace redco {

namespace {

// Qwen2: windows in every second of the first max_window_layers layers, or as in layer_types.
void read_moe_windows(ModelConfig& c, DecoderArchitecture& s, i64 window) {
  const i64 first = c.integer_or("max_window_layers", 28, 0), n = static_cast<i64>(s.layers.size());
  bool given;
  const std::vector<bool> slides = read_sliding_layers(c, n, &given);
  for (i64 i = 0; i < n; ++i) {
    if (slides[i] && window == 0) c.fail("layer_types", "sliding_attention needs use_sliding_window: true");
    if (given ? slides[i] : i % 2 == 0 && i < first) s.layers[i].window = window;
  }
}

}  // namespace

DecoderArchitecture read_qwen_moe(ModelConfig& c) {
  const bool third = c.text_or("model_type", "qwen2_moe") == "qwen3_moe";
  DecoderArchitecture s = read_usual(c, {.max_length = 32768, .kv_heads = third ? 4 : 16});
  s.ropes = {read_rope(c, s.heads.head_dim, s.max_length)};
  const bool use = c.boolean_or("use_sliding_window", false);
  const i64 given_window = c.integer_or("sliding_window", c.mentions("sliding_window") ? 0 : 4096, 0);
  const i64 window = use ? given_window : 0;
  MixtureSettings m;
  m.activation = read_expert_activation(c, s.activation);
  m.count =
      third ? c.integer_as_or({"num_experts", "num_local_experts"}, 128) : c.integer_or("num_experts", 60);
  read_router(c, m, "num_experts", third ? 8 : 4);
  m.inner = c.integer_or("moe_intermediate_size", third ? 768 : 1408);
  m.normalized = c.boolean_or("norm_topk_prob", false);
  if (third) {
    s.head_norms = {HeadNormSettings::Over::head, s.norm};
    s.qkv_bias = s.out_bias = c.boolean_or("attention_bias", false);
    for (DecoderLayer& l : s.layers) l.window = window;
    c.inert({"max_window_layers"});  // in published configs; transformers does not read it
  } else {
    s.qkv_bias = c.boolean_or("qkv_bias", true);
    m.shared_inner = c.integer_or("shared_expert_intermediate_size", 5632);
    m.shared = "mlp.shared_expert";
    m.shared_gate = "mlp.shared_expert_gate";
    read_moe_windows(c, s, window);
  }
  read_mixture_layers(c, s);
  s.mixture = m;
  return s;
}

DecoderArchitecture read_mellum(ModelConfig& c) {
  DecoderArchitecture s = read_usual(c, {.max_length = 131072, .kv_heads = 4, .head_dim = 128});
  s.head_norms = {HeadNormSettings::Over::head, s.norm};
  s.qkv_bias = s.out_bias = c.boolean_or("attention_bias", false);
  const LayerRopes ropes = read_layer_ropes(c, s.heads.head_dim, s.max_length, {.theta = 500000},
                                            {.theta = 10000, .theta_key = nullptr});
  s.ropes = {ropes.full, ropes.sliding};
  const i64 window = read_window(c, 1024);
  bool given;
  const std::vector<bool> slides = read_sliding_layers(c, static_cast<i64>(s.layers.size()), &given);
  for (size_t i = 0; i < slides.size(); ++i)
    if (slides[i]) s.layers[i] = {.window = window, .rope = 1};
  MixtureSettings m;
  m.activation = read_expert_activation(c, s.activation);
  m.count = c.integer_as_or({"num_local_experts", "num_experts"}, 64);
  read_router(c, m, "num_local_experts", 8);
  m.inner = c.integer_or("moe_intermediate_size", 896);
  m.normalized = c.boolean_or("norm_topk_prob", true);
  read_sparse_layers(c, s, 0);
  s.mixture = m;
  s.names.other_parts = {"mtp."};  // layers that predict later tokens, which transformers skips too
  c.inert({"num_nextn_predict_layers", "num_mtp_layers", "mtp_layer_types", "mtp_mlp_layer_types"});
  return s;
}

}  // namespace redco
