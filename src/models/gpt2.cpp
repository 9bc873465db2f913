// GPT-2 (Radford et al. 2019). Pre-norm blocks, learned positions, fused q/k/v stored (in, out).
#include <fmt/format.h>

#include <cmath>

#include "models/attention_block.h"
#include "models/model.h"
#include "models/spec_builder.h"
#include "ops/elementwise.h"
#include "ops/embedding.h"

namespace redco {

namespace {

class Gpt2 : public Model {
 public:
  explicit Gpt2(ModelConfig& c) {
    family_ = "gpt2";
    vocab_size_ = c.integer("vocab_size");
    max_length_ = c.integer_or("n_positions", 1024);
    width_ = c.integer("n_embd");
    n_layers_ = c.integer("n_layer", 0);
    heads_ = c.integer("n_head");
    inner_ = c.integer_or("n_inner", 4 * width_);
    if (width_ % heads_ != 0) c.fail("n_head", fmt::format("n_embd={} is no multiple of it", width_));
    activation_ = c.activation_or("activation_function", "gelu_new");
    residual_dropout_ = c.rate_or("resid_pdrop", 0.1);
    embedding_dropout_ = c.rate_or("embd_pdrop", 0.1);
    attention_dropout_ = c.rate_or("attn_pdrop", 0.1);
    eps_ = c.positive_or("layer_norm_epsilon", 1e-5);
    scale_ = c.boolean_or("scale_attn_weights", true);
    scale_by_layer_ = c.boolean_or("scale_attn_by_inverse_layer_idx", false);
    const bool tied = c.boolean_or("tie_word_embeddings", true);
    const double std = c.number_or("initializer_range", 0.02);
    // reorder_and_upcast_attn: scores in fp32, which they always are here. summary_*: heads of other tasks.
    // n_ctx, n_special, predict_special_tokens, output_past: left in published configs by early versions.
    c.inert({"reorder_and_upcast_attn", "summary_activation", "summary_first_dropout",
             "summary_proj_to_labels", "summary_type", "summary_use_proj", "n_ctx", "predict_special_tokens",
             "output_past"});
    c.expect("n_special", {"0"});
    c.finish();

    SpecBuilder b(params_);
    const i64 D = width_ / heads_;
    const HeadsOf q{0, heads_, heads_, D, false}, kv{0, heads_, heads_, D, true},
        o{1, heads_, heads_, D, false};
    const double residual_std =
        std / std::sqrt(2.0 * std::max<i64>(1, n_layers_));  // GPT-2 paper, section 2.3
    b.embedding("transformer.wte.weight", vocab_size_, width_, std);
    b.embedding("transformer.wpe.weight", max_length_, width_, std);
    for (i64 i = 0; i < n_layers_; ++i) {
      const std::string h = layer(i);
      b.norm(h + ".ln_1", width_, true);
      b.fused(h + ".attn.c_attn", {{"q", width_, q}, {"k", width_, kv}, {"v", width_, kv}}, width_, true, std,
              true);
      b.linear(h + ".attn.c_proj", width_, width_, true, residual_std, true, o);
      b.norm(h + ".ln_2", width_, true);
      b.linear(h + ".mlp.c_fc", inner_, width_, true, std, true);
      b.linear(h + ".mlp.c_proj", width_, inner_, true, residual_std, true);
    }
    b.norm("transformer.ln_f", width_, true);
    if (tied) {
      b.tie("lm_head.weight", "transformer.wte.weight");
    } else {
      b.linear("lm_head", vocab_size_, width_, false, std);
    }
    config_json_ = c.dump();
  }

  Tensor apply(const ParamTree& p, const DecoderInputs& in, const ApplyOptions& o) const override {
    Tensor x;
    {
      Scope s("embedding");
      x = embedding(p["transformer.wte.weight"], in.input_ids) +
          embedding(p["transformer.wpe.weight"], in.positions);
      x = dropout(o, "embedding", embedding_dropout_, x);
    }
    for (i64 i = 0; i < n_layers_; ++i) {
      if (o.hidden_states) o.hidden_states->push_back(x);
      x = run_block(o, layer(i), x, [this, &p, in, o, i](const Tensor& h) { return block(p, in, o, i, h); });
    }
    Scope s("lm_head");
    x = layer_norm(p, "transformer.ln_f", x, eps_);
    if (o.hidden_states) o.hidden_states->push_back(x);
    if (o.cache) o.cache->length += in.input_ids.size(1);
    return dense(p, "lm_head", head_input(o, x), o);
  }

  std::string canonical_name(const std::string& stored) const override {
    std::string name = stored;
    if (!name.starts_with("transformer.") && !name.starts_with("lm_head.")) name = "transformer." + name;
    if (name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias")) return "";
    return name;
  }

 private:
  static std::string layer(i64 i) { return fmt::format("transformer.h.{}", i); }

  Tensor block(const ParamTree& p, const DecoderInputs& in, const ApplyOptions& o, i64 i,
               const Tensor& x0) const {
    const std::string h = layer(i);
    Tensor x = x0;
    {
      Scope s("attention");
      const Tensor a = layer_norm(p, h + ".ln_1", x, eps_);
      const i64 D = width_ / heads_;
      double scale = scale_ ? 1 / std::sqrt(static_cast<double>(D)) : 1.0;
      if (scale_by_layer_) scale /= static_cast<double>(i + 1);
      const std::string qkv = h + ".attn.c_attn";
      const AttentionSettings settings{.scale = scale, .dropout = attention_dropout_};
      const AttentionBlock attention = {{qkv, "q"},         {qkv, "k"},          {qkv, "v"},
                                        h + ".attn.c_proj", {heads_, heads_, D}, settings};
      const Tensor out = self_attention(p, attention, o, i, a, in.key_mask);
      x = x + dropout(o, "attention_out", residual_dropout_, out);
    }
    Scope s("mlp");
    const Tensor m = layer_norm(p, h + ".ln_2", x, eps_);
    const Tensor f = activate(activation_, dense(p, h + ".mlp.c_fc", m, o));
    return x + dropout(o, "mlp_out", residual_dropout_, dense(p, h + ".mlp.c_proj", f, o));
  }

  i64 width_, heads_, inner_;
  std::string activation_;
  double residual_dropout_, embedding_dropout_, attention_dropout_, eps_;
  bool scale_, scale_by_layer_;
};

}  // namespace

std::unique_ptr<Model> make_gpt2(ModelConfig& c) { return std::make_unique<Gpt2>(c); }

}  // namespace redco
