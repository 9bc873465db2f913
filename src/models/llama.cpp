// LLaMA (Touvron et al. 2023), Mistral (Jiang et al. 2023), Qwen2 (Yang et al. 2024) and Qwen3 (Yang et al.
// 2025). They differ in biases, windows and norms of the heads.
#include <fmt/format.h>

#include "models/families.h"
#include "models/llama_decoder.h"
#include "models/rope_config.h"

namespace redco {

namespace {

class Llama : public LlamaDecoder {
 public:
  explicit Llama(ModelConfig& c) {
    const std::string type = c.text_or("model_type", "llama");
    const bool mistral = type == "mistral", qwen2 = type == "qwen2", qwen3 = type == "qwen3";
    read_common(c, {.max_length = mistral          ? 131072
                                  : qwen2 || qwen3 ? 32768
                                                   : 2048,
                    .kv_heads = mistral ? 8
                                : qwen3 ? 32
                                        : 0,
                    .head_dim = qwen3 ? 128 : 0});
    arch_.activation = c.activation_or("hidden_act", "silu");
    arch_.rope = read_rope(c, arch_.heads.head_dim, max_length_);
    arch_.head_norms = qwen3;
    if (mistral) read_window(c);
    if (qwen2 || qwen3) read_windows(c);
    if (qwen2) {
      arch_.qkv_bias = true;
      c.expect("use_mrope", {"false"});  // in Qwen2.5's configs
    } else if (!mistral) {
      arch_.qkv_bias = arch_.o_bias = c.boolean_or("attention_bias", false);
    }
    if (type == "llama") {
      arch_.mlp_bias = c.boolean_or("mlp_bias", false);
      c.inert({"max_sequence_length"});  // in the first conversions; no version of transformers reads it
    }
    c.finish();
    declare();
    config_json_ = c.dump();
  }

 private:
  // Mistral: the same window in all layers.
  void read_window(ModelConfig& c) {
    const i64 window = c.integer_or("sliding_window", c.mentions("sliding_window") ? 0 : 4096, 0);
    if (c.has("sliding_window") && window == 0) c.fail("sliding_window", "expected at least 1, or null");
    for (Layer& l : arch_.layers) l.window = window;
  }

  // Qwen: windows in the layers from max_window_layers on, or as in layer_types.
  void read_windows(ModelConfig& c) {
    const bool use = c.boolean_or("use_sliding_window", false);
    const bool none = c.mentions("sliding_window") && !c.has("sliding_window");
    const i64 window = c.integer_or("sliding_window", 4096);
    const i64 first = c.integer_or("max_window_layers", 28, 0);
    bool given;
    const std::vector<bool> slides = read_sliding_layers(c, &given);
    for (i64 i = 0; i < n_layers_; ++i) {
      if (slides[i] && (!use || none))
        c.fail("layer_types", "sliding_attention needs use_sliding_window: true and a sliding_window");
      if (given ? slides[i] : use && !none && i >= first) arch_.layers[i].window = window;
    }
  }
};

}  // namespace

std::unique_ptr<Model> make_llama(ModelConfig& c) { return std::make_unique<Llama>(c); }

}  // namespace redco
