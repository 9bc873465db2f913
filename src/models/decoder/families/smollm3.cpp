// SmolLM3 (Hugging Face 2025): LLaMA without positions in every fourth layer.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

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
  const i64 interval = c.integer_or("no_rope_layer_interval", 4);
  const nlohmann::json rotated = nlohmann::json::parse(c.json("no_rope_layers"));  // 1: rotated
  if (!rotated.is_null() && (!rotated.is_array() || static_cast<i64>(rotated.size()) != n))
    c.fail("no_rope_layers", fmt::format("expected a list of num_hidden_layers={} numbers, 0 or 1", n));
  const bool use = c.boolean_or("use_sliding_window", false);
  const i64 window = c.integer_or("sliding_window", 0);
  bool given;
  const std::vector<bool> slides = read_sliding_layers(c, n, &given);
  for (i64 i = 0; i < n; ++i) {
    const bool rope = rotated.is_null() ? (i + 1) % interval != 0 : rotated[i] != 0;
    const bool slide = given ? slides[i] : use && !rope;
    if (given && slide && window == 0) c.fail("sliding_window", "layers with sliding_attention need it");
    s.layers[i] = {.window = slide ? window : 0, .rope = rope ? 0 : -1};
  }
  c.inert({"max_window_layers"});  // in published configs; no version of transformers reads it
  return s;
}

}  // namespace redco
