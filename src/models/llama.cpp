// LLaMA (Touvron et al. 2023), Mistral (Jiang et al. 2023) and Qwen2 (Yang et al. 2024): RMS norms, rotary
// positions in half-split pairs, gated MLPs, grouped key/value heads. They differ in biases and windows.
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "models/attention_block.h"
#include "models/families.h"
#include "models/rope_config.h"
#include "models/spec_builder.h"
#include "ops/elementwise.h"
#include "ops/embedding.h"

namespace redco {

namespace {

class Llama : public Model {
 public:
  explicit Llama(ModelConfig& c) {
    family_ = c.text_or("model_type", "llama");
    const bool mistral = family_ == "mistral", qwen2 = family_ == "qwen2";
    vocab_size_ = c.integer("vocab_size");
    padding_row_ = c.padding_row(vocab_size_);
    max_length_ = c.integer_or("max_position_embeddings", mistral ? 131072 : qwen2 ? 32768 : 2048);
    width_ = c.integer("hidden_size");
    n_layers_ = c.integer("num_hidden_layers", 0);
    const i64 inner = c.integer("intermediate_size");
    read_heads(c, mistral);
    rope_ = read_rope(c, heads_.head_dim, max_length_);
    read_windows(c, mistral, qwen2);
    activation_ = c.activation_or("hidden_act", "silu");
    attention_dropout_ = c.rate_or("attention_dropout", 0);
    eps_ = c.positive_or("rms_norm_eps", 1e-6);
    const bool tied = c.boolean_or("tie_word_embeddings", false);
    const double std = c.number_or("initializer_range", 0.02);
    bool qkv_bias = qwen2, o_bias = false, mlp_bias = false;
    if (qwen2) {
      c.expect("use_mrope", {"false"});  // in Qwen2.5's configs
    } else if (!mistral) {
      qkv_bias = o_bias = c.boolean_or("attention_bias", false);
      mlp_bias = c.boolean_or("mlp_bias", false);
      c.inert({"max_sequence_length"});  // in the first conversions; no version of transformers reads it
    }
    c.finish();

    SpecBuilder b(params_);
    const i64 H = heads_.n_head, K = heads_.n_kv, D = heads_.head_dim;
    const HeadsOf q{0, H, K, D, false}, kv{0, H, K, D, true}, o{1, H, K, D, false};
    b.embedding("model.embed_tokens.weight", vocab_size_, width_, std);
    for (i64 i = 0; i < n_layers_; ++i) {
      const std::string h = layer(i);
      b.norm(h + ".input_layernorm", width_, false);
      b.linear(h + ".self_attn.q_proj", H * D, width_, qkv_bias, std, false, q);
      b.linear(h + ".self_attn.k_proj", K * D, width_, qkv_bias, std, false, kv);
      b.linear(h + ".self_attn.v_proj", K * D, width_, qkv_bias, std, false, kv);
      b.linear(h + ".self_attn.o_proj", width_, H * D, o_bias, std, false, o);
      b.norm(h + ".post_attention_layernorm", width_, false);
      b.linear(h + ".mlp.gate_proj", inner, width_, mlp_bias, std);
      b.linear(h + ".mlp.up_proj", inner, width_, mlp_bias, std);
      b.linear(h + ".mlp.down_proj", width_, inner, mlp_bias, std);
    }
    b.norm("model.norm", width_, false);
    if (tied) {
      b.tie("lm_head.weight", "model.embed_tokens.weight");
    } else {
      b.linear("lm_head", vocab_size_, width_, false, std);
    }
    config_json_ = c.dump();
  }

  Tensor apply(const ParamTree& p, const DecoderInputs& in, const ApplyOptions& o) const override {
    Tensor x;
    {
      Scope s("embedding");
      x = embedding(p["model.embed_tokens.weight"], in.input_ids, padding_row_);
    }
    for (i64 i = 0; i < n_layers_; ++i) {
      if (o.hidden_states) o.hidden_states->push_back(x);
      x = run_block(o, layer(i), x, [this, &p, in, o, i](const Tensor& h) { return block(p, in, o, i, h); });
    }
    Scope s("lm_head");
    x = rms_norm(p, "model.norm", x, eps_);
    if (o.hidden_states) o.hidden_states->push_back(x);
    if (o.cache) o.cache->length += in.input_ids.size(1);
    return dense(p, "lm_head", head_input(o, x), o);
  }

  // The model without its head is saved without the prefix; frequencies were buffers until transformers 4.32.
  std::string canonical_name(const std::string& stored) const override {
    if (stored.ends_with("rotary_emb.inv_freq")) return "";
    if (stored.starts_with("model.") || stored.starts_with("lm_head.")) return stored;
    return "model." + stored;
  }

 private:
  static std::string layer(i64 i) { return fmt::format("model.layers.{}", i); }

  void read_heads(ModelConfig& c, bool mistral) {
    const i64 H = c.integer("num_attention_heads");
    const bool absent = !c.mentions("num_key_value_heads");
    const i64 K = c.integer_or("num_key_value_heads", mistral && absent ? 8 : H);
    if (H % K != 0)
      c.fail("num_key_value_heads", fmt::format("num_attention_heads={} is no multiple of it", H));
    if (!c.has("head_dim") && width_ % H != 0)
      c.fail("num_attention_heads", fmt::format("hidden_size={} is no multiple of it", width_));
    heads_ = {H, K, c.integer_or("head_dim", width_ / H)};
  }

  // Which layers see how far back. Mistral: all alike. Qwen2: layers from max_window_layers on, or
  // layer_types.
  void read_windows(ModelConfig& c, bool mistral, bool qwen2) {
    windows_.assign(n_layers_, 0);
    if (mistral) {
      const i64 window = c.integer_or("sliding_window", c.mentions("sliding_window") ? 0 : 4096, 0);
      if (c.has("sliding_window") && window == 0) c.fail("sliding_window", "expected at least 1, or null");
      windows_.assign(n_layers_, window);
    }
    if (!qwen2) return;
    const bool use = c.boolean_or("use_sliding_window", false);
    const bool none = c.mentions("sliding_window") && !c.has("sliding_window");
    const i64 window = c.integer_or("sliding_window", 4096);
    const i64 first = c.integer_or("max_window_layers", 28, 0);
    const nlohmann::json types = nlohmann::json::parse(c.json("layer_types"));
    if (!types.is_null() && (!types.is_array() || static_cast<i64>(types.size()) != n_layers_))
      c.fail("layer_types", fmt::format("expected a list of num_hidden_layers={} texts", n_layers_));
    for (i64 i = 0; i < n_layers_; ++i) {
      bool slides = use && !none && i >= first;
      if (!types.is_null()) {
        if (types[i] != "sliding_attention" && types[i] != "full_attention")
          c.fail("layer_types", "supported: full_attention, sliding_attention");
        slides = types[i] == "sliding_attention";
        if (slides && (!use || none))
          c.fail("layer_types", "sliding_attention needs use_sliding_window: true and a sliding_window");
      }
      if (slides) windows_[i] = window;
    }
  }

  Tensor block(const ParamTree& p, const DecoderInputs& in, const ApplyOptions& o, i64 i,
               const Tensor& x0) const {
    const std::string h = layer(i);
    Tensor x = x0;
    {
      Scope s("attention");
      const Tensor a = rms_norm(p, h + ".input_layernorm", x, eps_);
      const std::string c = h + ".self_attn.";
      const double scale = 1 / std::sqrt(static_cast<double>(heads_.head_dim));
      const AttentionSettings settings{.scale = scale, .window = windows_[i], .dropout = attention_dropout_};
      const AttentionBlock attention = {c + "q_proj", c + "k_proj", c + "v_proj", c + "o_proj",
                                        heads_,       settings,     &rope_};
      x = x + self_attention(p, attention, o, i, a, in.key_mask, in.positions);
    }
    Scope s("mlp");
    const Tensor m = rms_norm(p, h + ".post_attention_layernorm", x, eps_);
    const Tensor gate = activate(activation_, dense(p, h + ".mlp.gate_proj", m, o));
    return x + dense(p, h + ".mlp.down_proj", gate * dense(p, h + ".mlp.up_proj", m, o), o);
  }

  i64 width_, padding_row_;
  HeadGeometry heads_;
  std::string activation_;
  double attention_dropout_, eps_;
  RopeOptions rope_;
  std::vector<i64> windows_;  // per layer; 0: all earlier tokens
};

}  // namespace

std::unique_ptr<Model> make_llama(ModelConfig& c) { return std::make_unique<Llama>(c); }

}  // namespace redco
