// Gemma (Gemma Team 2024), Gemma 2 (2024: also norms after attention and MLP, soft caps, sliding windows in
// every second layer) and the text model of Gemma 3 (2025: norms of the heads instead of caps, five sliding
// layers per full layer, one rotary base for each kind). Norm weights are stored minus one; embeddings are
// scaled.
#include <fmt/format.h>

#include <cmath>

#include "models/families.h"
#include "models/llama_decoder.h"
#include "models/rope_config.h"

namespace redco {

namespace {

class Gemma : public LlamaDecoder {
 public:
  explicit Gemma(ModelConfig& c) {
    const std::string type = c.text_or("model_type", "gemma");
    const bool first = type == "gemma", third = type == "gemma3_text";
    read_common(
        c, {.max_length = third ? 131072 : 8192, .kv_heads = first ? 16 : 4, .head_dim = 256, .tied = true});
    Architecture& s = arch_;
    if (!c.mentions("pad_token_id")) s.padding_row = 0;
    s.unit_offset = true;
    s.embedding_scale = static_cast<float>(std::sqrt(static_cast<double>(s.width)));  // fp32 in transformers
    s.qkv_bias = s.o_bias = c.boolean_or("attention_bias", false);
    c.expect("use_bidirectional_attention", {"false"});
    c.inert({"cache_implementation"});  // how transformers keeps its cache
    if (first) {
      read_activation(c);
      s.rope = read_rope(c, s.heads.head_dim, max_length_);
    } else {
      s.activation = c.activation_or("hidden_activation", "gelu_pytorch_tanh");
      c.inert({"hidden_act"});  // also in published configs; transformers does not read it
      s.outer_norms = true;
      s.score_scale = 1 / std::sqrt(c.positive_or("query_pre_attn_scalar", 256));
      s.logit_cap = read_cap(c, "final_logit_softcapping", third ? 0 : 30);
      if (third) {
        s.head_norms = true;
        c.inert({"attn_logit_softcapping"});  // transformers reads the key and ignores it
        const LayerRopes ropes = read_layer_ropes(c, s.heads.head_dim, max_length_);
        s.rope = ropes.full;
        s.local_rope = ropes.sliding;
      } else {
        s.score_cap = read_cap(c, "attn_logit_softcapping", 50);
        s.rope = read_rope(c, s.heads.head_dim, max_length_);
      }
      read_windows(c, third);
    }
    c.finish();
    declare();
    config_json_ = c.dump();
  }

 private:
  // Gemma's first configs have gelu, but mean its tanh form, as the later key hidden_activation has it.
  void read_activation(ModelConfig& c) {
    std::string& name = arch_.activation;
    name = c.activation_or("hidden_act", "gelu_pytorch_tanh");
    if (name == "gelu") name = "gelu_pytorch_tanh";
    if (c.activation_or("hidden_activation", name) != name)
      c.fail("hidden_activation", fmt::format("hidden_act means {}; keep one of them", name));
  }

  // 0: none.
  static double read_cap(ModelConfig& c, const char* key, double fallback) {
    const bool none = c.mentions(key) && !c.has(key);
    const double cap = c.number_or(key, none ? 0 : fallback);
    if (c.has(key) && cap <= 0) c.fail(key, "expected a number above 0, or null");
    return cap;
  }

  // From layer_types, or one full layer after each sliding_window_pattern - 1 sliding layers.
  void read_windows(ModelConfig& c, bool third) {
    const bool none = c.mentions("sliding_window") && !c.has("sliding_window");
    const i64 window = c.integer_or("sliding_window", 4096);
    if (!third && c.has("sliding_window_size") && c.integer("sliding_window_size") != window)
      c.fail("sliding_window_size",
             fmt::format("sliding_window={} contradicts it; keep one of them", window));
    const i64 pattern = third ? c.integer_or("sliding_window_pattern", 6) : 2;
    if (third) c.inert({"_sliding_window_pattern"});  // what layer_types were made from
    bool given;
    std::vector<bool> slides = read_sliding_layers(c, &given);
    for (i64 i = 0; i < n_layers_; ++i) {
      if (!given) slides[i] = (i + 1) % pattern != 0;
      if (!slides[i]) continue;
      if (none) c.fail("sliding_window", "layers with sliding_attention need it");
      arch_.layers[i] = {.window = window, .local = third};
    }
  }
};

}  // namespace

std::unique_ptr<Model> make_gemma(ModelConfig& c) { return std::make_unique<Gemma>(c); }

}  // namespace redco
