// SmolLM3 (Hugging Face 2025): LLaMA without positions in every fourth layer.
#include "models/decoder/families.h"
#include "models/decoder/read.h"

namespace redco {

DecoderArchitecture read_smollm3(ModelConfig& c) {
  DecoderArchitecture s =
      read_usual(c, {.max_length = 32768, .kv_heads = 4, .tied = true, .padding_row = 128004});
  s.ropes = {read_rope(c, s.heads.head_dim, s.max_length, {.theta = 2e6})};
  s.qkv_bias = s.out_bias = c.boolean_or("attention_bias", false);
  s.mlp_bias = c.boolean_or("mlp_bias", false);
  const auto n = static_cast<i64>(s.layers.size());
  const std::vector<bool> rotated = read_rotated_layers(c, n);
  const bool use = c.boolean_or("use_sliding_window", false);
  const i64 window = c.integer_or("sliding_window", 0);
  bool given;
  const std::vector<bool> slides = read_sliding_layers(c, n, &given);
  for (i64 i = 0; i < n; ++i) {
    const bool slide = given ? slides[i] : use && !rotated[i];
    if (given && slide && window == 0) c.fail("sliding_window", "layers with sliding_attention need it");
    s.layers[i] = {.window = slide ? window : 0, .rope = rotated[i] ? 0 : -1};
  }
  c.inert({"max_window_layers"});  // in published configs; no version of transformers reads it
  return s;
}

}  // namespace redco
