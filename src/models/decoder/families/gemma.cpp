// Gemma (Gemma Team 2024), Gemma 2 (2024: also norms after attention and MLP, soft caps, sliding windows in
// every second layer) and the text model of Gemma 3 (2025: norms of the heads instead of caps, five sliding
// layers per full layer, one rotary base for each kind). Norm weights are stored minus one; embeddings are
// scaled. VaultGemma (2025) is Gemma 2 without norms after the parts. With use_bidirectional_attention, Gemma
// 3 is an encoder (EmbeddingGemma 2025).
#include <fmt/format.h>

#include <cmath>

#include "models/decoder/families.h"
#include "models/decoder/read.h"

namespace redco {

namespace {

// Gemma's first configs have gelu, but mean its tanh form, as the later key hidden_activation has it.
std::string read_gemma_activation(ModelConfig& c) {
  std::string name = c.activation_or("hidden_act", "gelu_pytorch_tanh");
  if (name == "gelu") name = "gelu_pytorch_tanh";
  if (c.activation_or("hidden_activation", name) != name)
    c.fail("hidden_activation", fmt::format("hidden_act means {}; keep one of them", name));
  return name;
}

// From layer_types, or one full layer after each sliding_window_pattern - 1 sliding layers.
void read_gemma_windows(ModelConfig& c, DecoderArchitecture& s, bool third) {
  const bool none = c.mentions("sliding_window") && !c.has("sliding_window");
  const i64 all = c.integer_or("sliding_window", 4096);
  const i64 window = s.bidirectional ? all / 2 + 1 : all;  // with the token itself, to each side
  if (!third && c.has("sliding_window_size") && c.integer("sliding_window_size") != all)
    c.fail("sliding_window_size", fmt::format("sliding_window={} contradicts it; keep one of them", all));
  const i64 pattern = third ? c.integer_or("sliding_window_pattern", 6) : 2;
  if (third) c.inert({"_sliding_window_pattern"});  // what layer_types were made from
  const auto n = static_cast<i64>(s.layers.size());
  const std::vector<bool> slides = read_sliding_layers_or(c, n, pattern);
  for (i64 i = 0; i < n; ++i) {
    if (!slides[i]) continue;
    if (none) c.fail("sliding_window", "layers with sliding_attention need it");
    s.layers[i] = {.window = window, .rope = third ? 1 : 0};
  }
}

}  // namespace

DecoderArchitecture read_gemma(ModelConfig& c) { return read_gemma_with(c, {}); }

DecoderArchitecture read_gemma_with(ModelConfig& c, DecoderDefaults defaults) {
  const std::string type = c.text_or("model_type", "gemma");
  const bool first = type == "gemma", third = type == "gemma3_text";
  defaults.max_length = third ? 131072 : 8192;
  defaults.kv_heads = first ? 16 : 4;
  defaults.head_dim = 256;
  defaults.tied = true;
  defaults.padding_row = 0;
  defaults.activation = nullptr;
  DecoderArchitecture s = read_usual(c, defaults);
  s.norm.unit_offset = true;
  s.embedding_scale = static_cast<float>(std::sqrt(static_cast<double>(s.width)));  // fp32 in transformers
  s.qkv_bias = s.out_bias = c.boolean_or("attention_bias", false);
  if (third)
    s.bidirectional = c.boolean_or("use_bidirectional_attention", false);
  else
    c.expect("use_bidirectional_attention", {"false"});
  c.inert({"cache_implementation"});  // how transformers keeps its cache
  if (first) {
    s.activation = read_gemma_activation(c);
    s.ropes = {read_rope(c, s.heads.head_dim, s.max_length)};
    return s;
  }
  s.activation = c.activation_or("hidden_activation", "gelu_pytorch_tanh");
  c.inert({"hidden_act"});  // also in published configs; transformers does not read it
  s.names.mlp_norm = "pre_feedforward_layernorm";
  if (type != "vaultgemma") {
    s.names.attention_out_norm = "post_attention_layernorm";
    s.names.mlp_out_norm = "post_feedforward_layernorm";
  }
  s.score_scale = 1 / std::sqrt(c.positive_or("query_pre_attn_scalar", 256));
  s.logit_cap = read_cap(c, "final_logit_softcapping", third ? 0 : 30);
  if (third) {
    s.head_norms = {HeadNormSettings::Over::head, s.norm};
    c.inert({"attn_logit_softcapping"});  // transformers reads the key and ignores it
    const LayerRopes ropes = read_layer_ropes(c, s.heads.head_dim, s.max_length);
    s.ropes = {ropes.full, ropes.sliding};
  } else {
    s.score_cap = read_cap(c, "attn_logit_softcapping", 50);
    s.ropes = {read_rope(c, s.heads.head_dim, s.max_length)};
  }
  read_gemma_windows(c, s, third);
  return s;
}

}  // namespace redco
