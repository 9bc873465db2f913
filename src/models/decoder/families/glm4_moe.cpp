// GLM-4.5 (GLM Team 2025): rotary positions on half of each head, norms of the heads, and DeepSeek-V3's
// mixture. dots.llm1 (2025): the same mixture, whole rotary positions, windows in the last layers. Solar Open
// (Upstage 2026): the mixture in all layers, no norms of the heads.
#include "models/decoder/families.h"
#include "models/decoder/read.h"

namespace redco {

DecoderArchitecture read_glm4_moe(ModelConfig& c) {
  DecoderArchitecture s = read_usual(c, {.max_length = 131072, .kv_heads = 8, .eps = 1e-5});
  s.qkv_bias = c.boolean_or("attention_bias", false);
  if (c.boolean_or("use_qk_norm", false)) s.head_norms = {HeadNormSettings::Over::head, s.norm};
  s.ropes = {
      read_rope(c, s.heads.head_dim, s.max_length, {.share_key = "partial_rotary_factor", .share = 0.5})};
  s.mixture = read_sigmoid_mixture(c, s.activation, {.count = 128, .inner = 1408, .scale = 1});
  read_dense_layers(c, s, 1);
  // Further layers that predict later tokens; transformers does not load them.
  c.inert({"num_nextn_predict_layers", "num_mtp_layers"});
  s.extra_layers = true;
  return s;
}

DecoderArchitecture read_dots1(ModelConfig& c) {
  DecoderArchitecture s = read_usual(c, {.max_length = 2048});
  s.qkv_bias = s.out_bias = c.boolean_or("attention_bias", false);
  s.head_norms = {HeadNormSettings::Over::head, s.norm};
  s.ropes = {read_rope(c, s.heads.head_dim, s.max_length)};
  const i64 n = static_cast<i64>(s.layers.size()), window = read_window(c, 4096);
  const i64 first = c.integer_or("max_window_layers", 62, 0);
  bool given;
  const std::vector<bool> slides = read_sliding_layers(c, n, &given);
  for (i64 i = 0; i < n; ++i)
    if (given ? slides[i] : i >= first) s.layers[i].window = window;
  s.mixture = read_sigmoid_mixture(
      c, s.activation, {.count = 128, .per_token = 6, .inner = 1408, .scale = 1, .normalized = false});
  read_dense_layers(c, s, 0);
  return s;
}

DecoderArchitecture read_solar_open(ModelConfig& c) {
  // The configuration has no intermediate_size.
  DecoderArchitecture s =
      read_usual(c, {.inner = 1, .max_length = 131072, .kv_heads = 8, .head_dim = 128, .eps = 1e-5});
  s.qkv_bias = c.boolean_or("attention_bias", false);
  s.ropes = {
      read_rope(c, s.heads.head_dim, s.max_length, {.theta = 1e6, .share_key = "partial_rotary_factor"})};
  s.mixture = read_sigmoid_mixture(c, s.activation, {.count = 128, .inner = 1280, .scale = 1});
  for (DecoderLayer& l : s.layers) l.mixture = true;
  return s;
}

}  // namespace redco
