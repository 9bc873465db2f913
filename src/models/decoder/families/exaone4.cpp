// EXAONE 4 (LG AI Research 2025): norms after attention and MLP only, and of each head; the large model has
// windows, and no positions in its full layers. K-EXAONE (`exaone_moe`, 2026): the usual norms, DeepSeek-V3's
// mixture.
#include "models/decoder/families.h"
#include "models/decoder/read.h"

namespace redco {

DecoderArchitecture read_exaone4(ModelConfig& c) {
  const bool mixture = c.text_or("model_type", "exaone4") == "exaone_moe";
  DecoderArchitecture s =
      read_usual(c, {.max_length = 2048, .kv_heads = 32, .eps = 1e-5, .padding_row = mixture ? 0 : -1});
  if (!mixture) {
    s.names.attention_norm = s.names.mlp_norm = "";
    s.names.attention_out_norm = "post_attention_layernorm";
    s.names.mlp_out_norm = "post_feedforward_layernorm";
  }
  s.head_norms = {HeadNormSettings::Over::head, s.norm};
  s.ropes = {read_rope(c, s.heads.head_dim, s.max_length)};
  const i64 window = read_window(c, 4096);
  // A text ("LLLG") in published configs, which then have layer_types.
  if (c.has("layer_types")) c.inert({"sliding_window_pattern"});
  const i64 pattern = c.has("layer_types") ? 4 : c.integer_or("sliding_window_pattern", 4, 0);  // 0: none
  const std::vector<bool> slides =
      read_sliding_layers_or(c, static_cast<i64>(s.layers.size()), window > 0 ? pattern : 0);
  for (size_t i = 0; i < slides.size(); ++i)
    s.layers[i] = {.window = slides[i] ? window : 0, .rope = window == 0 || slides[i] ? 0 : -1};
  if (!mixture) return s;
  s.mixture = read_sigmoid_mixture(
      c, s.activation,
      {.count_key = "num_experts", .shared_key = "num_shared_experts", .count = 64, .inner = 1024});
  s.mixture->correction = "mlp.e_score_correction_bias";
  read_sparse_layers(c, s, c.integer_or("first_k_dense_replace", 1, 0));
  s.names.other_parts = {"mtp."};  // layers that predict later tokens, which transformers skips too
  c.inert({"num_nextn_predict_layers"});
  return s;
}

}  // namespace redco
