// LLaMA (Touvron et al. 2023), Mistral (Jiang et al. 2023), Qwen2 (Yang et al. 2024) and Qwen3 (Yang et al.
// 2025). They differ in biases, windows and norms of the heads.
#include "models/decoder/families.h"
#include "models/decoder/read.h"

namespace redco {

namespace {

// Qwen: windows in the layers from max_window_layers on, or as in layer_types.
void read_qwen_windows(ModelConfig& c, DecoderArchitecture& s) {
  const auto n = static_cast<i64>(s.layers.size());
  const bool use = c.boolean_or("use_sliding_window", false);
  const bool none = c.mentions("sliding_window") && !c.has("sliding_window");
  const i64 window = c.integer_or("sliding_window", 4096);
  const i64 first = c.integer_or("max_window_layers", 28, 0);
  bool given;
  const std::vector<bool> slides = read_sliding_layers(c, n, &given);
  for (i64 i = 0; i < n; ++i) {
    if (slides[i] && (!use || none))
      c.fail("layer_types", "sliding_attention needs use_sliding_window: true and a sliding_window");
    if (given ? slides[i] : use && !none && i >= first) s.layers[i].window = window;
  }
}

}  // namespace

DecoderArchitecture read_llama(ModelConfig& c) {
  const std::string type = c.text_or("model_type", "llama");
  const bool mistral = type == "mistral", qwen2 = type == "qwen2", qwen3 = type == "qwen3";
  DecoderArchitecture s = read_usual(c, {.max_length = mistral          ? 131072
                                                       : qwen2 || qwen3 ? 32768
                                                                        : 2048,
                                         .kv_heads = mistral ? 8
                                                     : qwen3 ? 32
                                                             : 0,
                                         .head_dim = qwen3 ? 128 : 0});
  s.ropes = {read_rope(c, s.heads.head_dim, s.max_length)};
  if (qwen3) s.head_norms = {HeadNormSettings::Over::head, s.norm};
  if (mistral) read_window_of_all(c, s, 4096);
  if (qwen2 || qwen3) read_qwen_windows(c, s);
  if (qwen2) {
    s.qkv_bias = true;
    c.expect("use_mrope", {"false"});  // in Qwen2.5's configs
  } else if (!mistral) {
    s.qkv_bias = s.out_bias = c.boolean_or("attention_bias", false);
  }
  if (type == "llama") {
    s.mlp_bias = c.boolean_or("mlp_bias", false);
    c.inert({"max_sequence_length"});  // in the first conversions; no version of transformers reads it
  }
  return s;
}

}  // namespace redco
