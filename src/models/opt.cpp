// OPT (Zhang et al. 2022): learned positions counted from the attention mask, norms before each part (350m:
// after it), embeddings that may be narrower than the model.
#include <fmt/format.h>

#include <cmath>

#include "models/attention_block.h"
#include "models/families.h"
#include "models/spec_builder.h"
#include "ops/elementwise.h"
#include "ops/embedding.h"

namespace redco {

namespace {

constexpr i64 kPositionOffset = 2;  // padding has row 1 of the table, the n-th token (from 1) row n + 1
constexpr double kEps = 1e-5;       // torch.nn.LayerNorm's default; no key sets it

class Opt : public Model {
 public:
  explicit Opt(ModelConfig& c) {
    family_ = "opt";
    vocab_size_ = c.integer("vocab_size");
    padding_row_ = c.mentions("pad_token_id") ? c.padding_row(vocab_size_) : 1;
    max_length_ = c.integer_or("max_position_embeddings", 2048);
    width_ = c.integer("hidden_size");
    n_layers_ = c.integer("num_hidden_layers", 0);
    heads_ = c.integer("num_attention_heads");
    const i64 inner = c.integer("ffn_dim");
    const i64 narrow = hidden_size_ = c.integer_or("word_embed_proj_dim", width_);
    if (width_ % heads_ != 0)
      c.fail("num_attention_heads", fmt::format("expected a divisor of hidden_size={}", width_));
    pre_norm_ = c.boolean_or("do_layer_norm_before", true);
    // Checkpoints fine-tuned with transformers before 4.20.1 lack the norm after the last layer.
    const bool removed = c.boolean_or("_remove_final_layer_norm", false);
    final_norm_ = pre_norm_ && !removed;
    projected_ = narrow != width_;
    const bool bias = c.boolean_or("enable_bias", true);
    const bool affine = c.boolean_or("layer_norm_elementwise_affine", true);
    activation_ = c.activation_or("activation_function", "relu");
    dropout_ = c.rate_or("dropout", 0.1);
    attention_dropout_ = c.rate_or("attention_dropout", 0);
    const bool tied = c.boolean_or("tie_word_embeddings", true);
    const double std = c.number_or("init_std", 0.02);
    c.expect("layerdrop", {"0.0"});
    c.expect("activation_dropout", {"0.0"});  // in early configs; no version of transformers applies it
    c.finish();

    SpecBuilder b(params_);
    const i64 D = width_ / heads_;
    const HeadsOf q{0, heads_, heads_, D, false}, kv{0, heads_, heads_, D, true},
        o{1, heads_, heads_, D, false};
    const auto norm = [&](const std::string& prefix) {
      if (affine) b.norm(prefix, width_, true);
    };
    b.embedding(at("embed_tokens.weight"), vocab_size_, narrow, std);
    b.positions(at("embed_positions.weight"), max_length_ + kPositionOffset, width_, std);
    if (projected_) b.linear(at("project_in"), width_, narrow, false, std);
    for (i64 i = 0; i < n_layers_; ++i) {
      const std::string h = layer(i);
      norm(h + ".self_attn_layer_norm");
      b.linear(h + ".self_attn.q_proj", width_, width_, bias, std, false, q);
      b.linear(h + ".self_attn.k_proj", width_, width_, bias, std, false, kv);
      b.linear(h + ".self_attn.v_proj", width_, width_, bias, std, false, kv);
      b.linear(h + ".self_attn.out_proj", width_, width_, bias, std, false, o);
      norm(h + ".final_layer_norm");
      b.linear(h + ".fc1", inner, width_, bias, std).role = Role::first;
      b.linear(h + ".fc2", width_, inner, bias, std).role = Role::second;
    }
    if (final_norm_) norm(at("final_layer_norm"));
    if (projected_) b.linear(at("project_out"), narrow, width_, false, std);
    if (tied) {
      b.tie("lm_head.weight", at("embed_tokens.weight"));
    } else {
      b.linear("lm_head", vocab_size_, narrow, false, std).role = Role::head;
    }
    config_json_ = c.dump();
  }

  Tensor decode(const ParamTree& p, const DecoderInputs& in, const ApplyOptions& o) const override {
    Tensor x;
    {
      Scope s("embedding");
      x = embedding(p[at("embed_tokens.weight")], in.input_ids, padding_row_);
      if (projected_) x = dense(p, at("project_in"), x, o);
      x = residual(o, x + embedding(p[at("embed_positions.weight")], in.positions));
    }
    for (i64 i = 0; i < n_layers_; ++i) {
      if (o.hidden_states) o.hidden_states->push_back(x);
      x = run_block(p, o, layer(i), x, [this, in, o, i](const ParamTree& own, const Tensor& h) {
        return block(own, in, o, i, h);
      });
    }
    Scope s("lm_head");
    if (final_norm_) x = layer_norm(p, at("final_layer_norm"), x, kEps);
    x = gather_tokens(o, x);
    if (projected_) x = dense(p, at("project_out"), x, o);
    if (o.hidden_states) o.hidden_states->push_back(x);
    return lm_head(p, "lm_head", x, o);
  }

  // Rows of the position table: the n-th token of the mask has n + 1 (n from 1), padding has 1.
  std::vector<i32> positions(std::span<const i32> mask, bool) const override {
    std::vector<i32> out(mask.size());
    i32 seen = 0;
    for (size_t t = 0; t < mask.size(); ++t) {
      seen += mask[t];
      out[t] = seen * mask[t] - 1 + static_cast<i32>(kPositionOffset);
    }
    return out;
  }

  // OPTForCausalLM saves model.decoder.*, OPTModel (and the first releases) decoder.*, the decoder alone no
  // prefix.
  std::string canonical_name(const std::string& stored) const override {
    std::string_view name = stored;
    if (name.starts_with("lm_head.")) return stored;
    if (name.starts_with("model.")) name.remove_prefix(6);
    if (name.starts_with("decoder.")) name.remove_prefix(8);
    if (name == "version") return "";
    return at(name);
  }

 private:
  static std::string at(std::string_view rest) { return fmt::format("model.decoder.{}", rest); }
  static std::string layer(i64 i) { return at(fmt::format("layers.{}", i)); }

  Tensor block(const ParamTree& p, const DecoderInputs& in, const ApplyOptions& o, i64 i,
               const Tensor& x0) const {
    const std::string h = layer(i);
    Tensor x = x0;
    {
      Scope s("attention");
      const std::string n = h + ".self_attn_layer_norm", c = h + ".self_attn.";
      const Tensor a = pre_norm_ ? layer_norm(p, n, x, kEps) : x;
      const i64 D = width_ / heads_;
      const double scale = 1 / std::sqrt(static_cast<double>(D));
      const AttentionSettings settings{.scale = scale, .dropout = attention_dropout_};
      const HeadGeometry heads{heads_, heads_, D};
      const AttentionBlock attention = {c + "q_proj",   c + "k_proj", c + "v_proj",
                                        c + "out_proj", heads,        settings};
      const Tensor out = self_attention(p, attention, o, i, a, in.key_mask);
      x = x + dropout(o, "attention_out", dropout_, residual(o, out));
      if (!pre_norm_) x = layer_norm(p, n, x, kEps, NormResult::stream);
    }
    Scope s("mlp");
    const std::string n = h + ".final_layer_norm";
    const Tensor m = gather_tokens(o, pre_norm_ ? layer_norm(p, n, x, kEps) : x);
    const Tensor f = activate(activation_, dense(p, h + ".fc1", m, o));
    x = x + dropout(o, "mlp_out", dropout_, residual(o, dense(p, h + ".fc2", f, o)));
    return pre_norm_ ? x : layer_norm(p, n, x, kEps, NormResult::stream);
  }

  i64 width_, heads_, padding_row_;
  bool pre_norm_, final_norm_, projected_;
  std::string activation_;
  double dropout_, attention_dropout_;
};

}  // namespace

std::unique_ptr<Model> make_opt(ModelConfig& c) { return std::make_unique<Opt>(c); }

}  // namespace redco
