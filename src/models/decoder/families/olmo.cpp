// OLMo (Groeneveld et al. 2024): LLaMA with layer norms without weights. OLMo 2 (2024): norms after attention
// and MLP only, and of all queries and all keys of a token. OLMo 3 (2025): also sliding windows.
#include "models/decoder/families.h"
#include "models/decoder/read.h"

namespace redco {

DecoderArchitecture read_olmo(ModelConfig& c) {
  const std::string type = c.text_or("model_type", "olmo");
  const bool first = type == "olmo", third = type == "olmo3";
  DecoderArchitecture s = read_usual(c, {.max_length = 2048,
                                         .eps_key = first ? "layer_norm_eps" : "rms_norm_eps",
                                         .eps = 1e-5,
                                         .padding_row = 1});
  s.qkv_bias = s.out_bias = c.boolean_or("attention_bias", false);
  if (first) {
    s.norm = {.rms = false, .weight = false, .eps = 1e-5};
    c.expect("layer_norm_eps", {"1e-05"});
    s.clip_qkv = c.number_or("clip_qkv", 0);
    if (s.clip_qkv < 0) c.fail("clip_qkv", "expected a number above 0, or null");
    s.ropes = {read_rope(c, s.heads.head_dim, s.max_length)};
    return s;
  }
  s.names.attention_norm = s.names.mlp_norm = "";
  s.names.attention_out_norm = "post_attention_layernorm";
  s.names.mlp_out_norm = "post_feedforward_layernorm";
  s.head_norms = {HeadNormSettings::Over::width, s.norm};
  if (!third) {
    s.ropes = {read_rope(c, s.heads.head_dim, s.max_length)};
    return s;
  }
  const LayerRopes ropes = read_layer_ropes(c, s.heads.head_dim, s.max_length, {.theta = 500000},
                                            {.theta = 500000, .theta_key = nullptr});
  s.ropes = {ropes.full, ropes.sliding};
  const i64 window = read_window(c, 4096);
  const std::vector<bool> slides = read_sliding_layers_or(c, static_cast<i64>(s.layers.size()), 4);
  for (size_t i = 0; i < slides.size(); ++i)
    if (slides[i]) s.layers[i] = {.window = window, .rope = 1};
  return s;
}

}  // namespace redco
