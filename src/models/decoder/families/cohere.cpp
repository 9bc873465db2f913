// Command R (Cohere 2024): parallel blocks behind one layer norm without bias, rotary positions in
// interleaved pairs, scaled logits. Command R7B (`cohere2`): sliding windows, and no positions in full
// layers.
#include "models/decoder/families.h"
#include "models/decoder/read.h"

namespace redco {

DecoderArchitecture read_cohere(ModelConfig& c) {
  const bool second = c.text_or("model_type", "cohere") == "cohere2";
  DecoderArchitecture s = read_usual(
      c, {.max_length = 8192, .eps_key = "layer_norm_eps", .eps = 1e-5, .tied = true, .padding_row = 0});
  s.names.mlp_norm = "";
  s.norm = {.rms = false, .eps = s.norm.eps};
  s.block = Block::parallel;
  s.qkv_bias = s.out_bias = c.boolean_or("attention_bias", false);
  s.logit_scale = c.number_or("logit_scale", 0.0625);
  s.ropes = {read_rope(c, s.heads.head_dim, s.max_length,
                       {.theta = second ? 10000.0 : 500000.0, .interleaved = true})};
  if (!second) {
    if (c.boolean_or("use_qk_norm", false)) s.head_norms = {HeadNormSettings::Over::each_head, s.norm};
    return s;
  }
  const i64 window = read_window(c, 4096), pattern = c.integer_or("sliding_window_pattern", 4);
  c.inert({"_sliding_window_pattern"});
  const std::vector<bool> slides = read_sliding_layers_or(c, static_cast<i64>(s.layers.size()), pattern);
  for (size_t i = 0; i < slides.size(); ++i)
    s.layers[i] = {.window = slides[i] ? window : 0, .rope = slides[i] ? 0 : -1};
  // In published configs, with the values of the one supported model.
  c.expect("use_gated_activation", {"true"});
  c.expect("use_parallel_block", {"true"});
  c.expect("position_embedding_type", {"\"rope_gptj\""});
  c.expect("rotary_pct", {"1.0", "1"});
  c.expect("use_qk_norm", {"false"});
  // How the original code spreads the embedding over devices, among others.
  c.inert({"order_of_interleaved_layers", "layer_switch", "use_embedding_sharing", "rope_scaling_factor",
           "use_parallel_embedding"});
  return s;
}

}  // namespace redco
