// GPT-J (Wang & Komatsuzaki 2021): attention and MLP in parallel after one norm, rotary positions in
// interleaved pairs on a part of each head, an output head with bias.
#include <fmt/format.h>

#include <cmath>

#include "models/attention_block.h"
#include "models/families.h"
#include "models/rope_config.h"
#include "models/spec_builder.h"
#include "ops/elementwise.h"
#include "ops/embedding.h"

namespace redco {

namespace {

class GptJ : public Model {
 public:
  explicit GptJ(ModelConfig& c) {
    family_ = "gptj";
    vocab_size_ = c.integer("vocab_size");
    max_length_ = c.integer_or("n_positions", 2048);
    width_ = hidden_size_ = c.integer("n_embd");
    n_layers_ = c.integer("n_layer", 0);
    heads_ = c.integer("n_head");
    inner_ = c.integer_or("n_inner", 4 * width_);
    if (width_ % heads_ != 0) c.fail("n_head", fmt::format("expected a divisor of n_embd={}", width_));
    const i64 D = width_ / heads_;
    if (c.mentions("rotary_dim") && !c.has("rotary_dim"))
      c.fail("rotary_dim", "expected a whole number; use the head width to rotate whole heads");
    const i64 rotary = c.integer_or("rotary_dim", 64, 2);
    if (rotary % 2 != 0 || rotary > D)
      c.fail("rotary_dim", fmt::format("expected an even number of at most the head width {}", D));
    rope_.inv_freq = std::make_shared<const std::vector<float>>(rope_frequencies(10000, rotary));
    rope_.interleaved = true;
    activation_ = c.activation_or("activation_function", "gelu_new");
    residual_dropout_ = c.rate_or("resid_pdrop", 0);
    embedding_dropout_ = c.rate_or("embd_pdrop", 0);
    attention_dropout_ = c.rate_or("attn_pdrop", 0);
    eps_ = c.positive_or("layer_norm_epsilon", 1e-5);
    const bool tied = c.boolean_or("tie_word_embeddings", false);
    const double std = c.number_or("initializer_range", 0.02);
    // Early versions wrote these keys into published configs: heads of other tasks, n_ctx (old name of
    // n_positions).
    c.inert({"summary_activation", "summary_first_dropout", "summary_proj_to_labels", "summary_type",
             "summary_use_proj", "n_ctx"});
    c.expect("rotary", {"true"});
    c.expect("scale_attn_weights", {"true"});
    c.finish();

    SpecBuilder b(params_);
    const HeadsOf q{0, heads_, heads_, D, false}, kv{0, heads_, heads_, D, true},
        o{1, heads_, heads_, D, false};
    b.embedding("transformer.wte.weight", vocab_size_, width_, std);
    for (i64 i = 0; i < n_layers_; ++i) {
      const std::string h = layer(i);
      b.norm(h + ".ln_1", width_, true);
      b.linear(h + ".attn.q_proj", width_, width_, false, std, false, q);
      b.linear(h + ".attn.k_proj", width_, width_, false, std, false, kv);
      b.linear(h + ".attn.v_proj", width_, width_, false, std, false, kv);
      b.linear(h + ".attn.out_proj", width_, width_, false, std, false, o);
      b.linear(h + ".mlp.fc_in", inner_, width_, true, std).role = Role::first;
      b.linear(h + ".mlp.fc_out", width_, inner_, true, std).role = Role::second;
    }
    b.norm("transformer.ln_f", width_, true);
    if (tied) {
      b.add("lm_head.bias", {vocab_size_}, ParamKind::bias, {Init::Kind::zeros, 0});
      b.tie("lm_head.weight", "transformer.wte.weight");
    } else {
      b.linear("lm_head", vocab_size_, width_, true, std).role = Role::head;
    }
    config_json_ = c.dump();
  }

  Tensor decode(const ParamTree& p, const DecoderInputs& in, const ApplyOptions& o) const override {
    Tensor x;
    {
      Scope s("embedding");
      x = residual(o, embedding(p["transformer.wte.weight"], in.input_ids));
      x = dropout(o, "embedding", embedding_dropout_, x);
    }
    for (i64 i = 0; i < n_layers_; ++i) {
      if (o.hidden_states) o.hidden_states->push_back(x);
      x = run_block(p, o, layer(i), x, [this, in, o, i](const ParamTree& own, const Tensor& h) {
        return block(own, in, o, i, h);
      });
    }
    Scope s("lm_head");
    x = gather_tokens(o, layer_norm(p, "transformer.ln_f", x, eps_));
    if (o.hidden_states) o.hidden_states->push_back(x);
    return lm_head(p, "lm_head", x, o);
  }

  // GPTJModel without head is saved without the prefix. The buffers are causal masks and sines of the
  // positions.
  std::string canonical_name(const std::string& stored) const override {
    for (const char* buffer : {".attn.bias", ".attn.masked_bias", ".attn.embed_positions"})
      if (stored.ends_with(buffer)) return "";
    if (stored.starts_with("transformer.") || stored.starts_with("lm_head.")) return stored;
    return "transformer." + stored;
  }

 private:
  static std::string layer(i64 i) { return fmt::format("transformer.h.{}", i); }

  // x + attention(ln(x)) + mlp(ln(x)) as one sum of three, so that Partial terms need one reduction: to
  // the placement of x.
  Tensor block(const ParamTree& p, const DecoderInputs& in, const ApplyOptions& o, i64 i,
               const Tensor& x) const {
    const std::string h = layer(i);
    const Tensor a = gather_tokens(o, layer_norm(p, h + ".ln_1", x, eps_));
    Tensor attended, mlp;
    {
      Scope s("attention");
      const std::string c = h + ".attn.";
      const i64 D = width_ / heads_;
      const double scale = 1 / std::sqrt(static_cast<double>(D));
      const AttentionSettings settings{.scale = scale, .dropout = attention_dropout_};
      const HeadGeometry heads{heads_, heads_, D};
      const AttentionBlock attention = {c + "q_proj", c + "k_proj", c + "v_proj", c + "out_proj",
                                        heads,        settings,     &rope_};
      attended = self_attention(p, attention, o, i, a, in.key_mask, in.positions);
      attended = dropout(o, "attention_out", residual_dropout_, attended);
    }
    Scope s("mlp");
    mlp = dense(p, h + ".mlp.fc_out", activate(activation_, dense(p, h + ".mlp.fc_in", a, o)), o);
    return add({x, attended, dropout(o, "mlp_out", residual_dropout_, mlp)});
  }

  i64 width_, heads_, inner_;
  std::string activation_;
  double residual_dropout_, embedding_dropout_, attention_dropout_, eps_;
  RopeOptions rope_;
};

}  // namespace

std::unique_ptr<Model> make_gptj(ModelConfig& c) { return std::make_unique<GptJ>(c); }

}  // namespace redco
