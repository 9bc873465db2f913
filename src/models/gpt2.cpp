// Pre-norm blocks, learned positions, fused q/k/v projections stored (in, out).
#include "models/gpt2.h"

#include <fmt/format.h>

#include <cmath>

#include "models/attention_block.h"
#include "models/families.h"
#include "ops/elementwise.h"
#include "ops/embedding.h"

namespace redco {

Gpt2Decoder::Gpt2Decoder(ModelConfig& c, std::string prefix, bool cross)
    : prefix_(std::move(prefix)), cross_(cross) {
  vocab_size_ = c.integer("vocab_size");
  max_length_ = c.integer_or("n_positions", 1024);
  width_ = c.integer("n_embd");
  layers_ = c.integer("n_layer", 0);
  const i64 H = c.integer("n_head");
  inner_ = c.integer_or("n_inner", 4 * width_);
  if (width_ % H != 0) c.fail("n_head", fmt::format("expected a divisor of n_embd={}", width_));
  heads_ = {H, H, width_ / H};
  activation_ = c.activation_or("activation_function", "gelu_new");
  residual_dropout_ = c.rate_or("resid_pdrop", 0.1);
  embedding_dropout_ = c.rate_or("embd_pdrop", 0.1);
  attention_dropout_ = c.rate_or("attn_pdrop", 0.1);
  eps_ = c.positive_or("layer_norm_epsilon", 1e-5);
  scale_ = c.boolean_or("scale_attn_weights", true);
  scale_by_layer_ = c.boolean_or("scale_attn_by_inverse_layer_idx", false);
  tied_ = c.boolean_or("tie_word_embeddings", true);
  std_ = c.number_or("initializer_range", 0.02);
  c.expect("add_cross_attention", {cross ? "true" : "false"});
  // reorder_and_upcast_attn: scores in fp32, which redco always uses. summary_*: heads of other tasks. n_ctx,
  // n_special, predict_special_tokens, output_past: early versions wrote them into published configs.
  c.inert({"reorder_and_upcast_attn", "summary_activation", "summary_first_dropout", "summary_proj_to_labels",
           "summary_type", "summary_use_proj", "n_ctx", "predict_special_tokens", "output_past"});
  c.expect("n_special", {"0"});
}

std::string Gpt2Decoder::layer(i64 i) const { return at(fmt::format("transformer.h.{}", i)); }

void Gpt2Decoder::declare(SpecBuilder& b) const {
  const auto [H, K, D] = heads_;
  const HeadsOf q{0, H, K, D, false}, kv{0, H, K, D, true}, o{1, H, K, D, false};
  const double residual_std = std_ / std::sqrt(2.0 * std::max<i64>(1, layers_));  // GPT-2 paper, section 2.3
  const std::string table = at("transformer.wte.weight");
  b.embedding(table, vocab_size_, width_, std_);
  b.positions(at("transformer.wpe.weight"), max_length_, width_, std_);
  for (i64 i = 0; i < layers_; ++i) {
    const std::string h = layer(i);
    b.norm(h + ".ln_1", width_, true);
    b.fused(h + ".attn.c_attn", {{"q", width_, q}, {"k", width_, kv}, {"v", width_, kv}}, width_, true, std_,
            true);
    b.linear(h + ".attn.c_proj", width_, width_, true, residual_std, true, o);
    if (cross_) {
      b.norm(h + ".ln_cross_attn", width_, true);
      b.linear(h + ".crossattention.q_attn", width_, width_, true, std_, true, q);
      b.fused(h + ".crossattention.c_attn", {{"k", width_, kv}, {"v", width_, kv}}, width_, true, std_, true);
      b.linear(h + ".crossattention.c_proj", width_, width_, true, residual_std, true, o);
    }
    b.norm(h + ".ln_2", width_, true);
    b.linear(h + ".mlp.c_fc", inner_, width_, true, std_, true).role = Role::first;
    b.linear(h + ".mlp.c_proj", width_, inner_, true, residual_std, true).role = Role::second;
  }
  b.norm(at("transformer.ln_f"), width_, true);
  if (tied_) {
    b.tie(at("lm_head.weight"), table);
  } else {
    b.linear(at("lm_head"), vocab_size_, width_, false, std_).role = Role::head;
  }
}

Tensor Gpt2Decoder::apply(const ParamTree& p, const DecoderInputs& in, const ApplyOptions& o) const {
  Tensor x;
  {
    Scope s("embedding");
    x = residual(o, embedding(p[at("transformer.wte.weight")], in.input_ids) +
                        embedding(p[at("transformer.wpe.weight")], in.positions));
    x = dropout(o, "embedding", embedding_dropout_, x);
  }
  for (i64 i = 0; i < layers_; ++i) {
    if (o.hidden_states) o.hidden_states->push_back(x);
    x = run_block(p, o, layer(i), x, [this, in, o, i](const ParamTree& own, const Tensor& h) {
      return block(own, in, o, i, h);
    });
  }
  Scope s("lm_head");
  x = gather_tokens(o, layer_norm(p, at("transformer.ln_f"), x, eps_));
  if (o.hidden_states) o.hidden_states->push_back(x);
  return lm_head(p, at("lm_head"), x, o);
}

std::string Gpt2Decoder::canonical_name(const std::string& stored) {
  std::string name = stored;
  if (!name.starts_with("transformer.") && !name.starts_with("lm_head.")) name = "transformer." + name;
  for (const char* mask :
       {".attn.bias", ".attn.masked_bias", ".crossattention.bias", ".crossattention.masked_bias"})
    if (name.ends_with(mask)) return "";
  return name;
}

double Gpt2Decoder::scale_of(i64 i) const {
  const double scale = scale_ ? 1 / std::sqrt(static_cast<double>(heads_.head_dim)) : 1.0;
  return scale_by_layer_ ? scale / static_cast<double>(i + 1) : scale;
}

Tensor Gpt2Decoder::block(const ParamTree& p, const DecoderInputs& in, const ApplyOptions& o, i64 i,
                          const Tensor& x0) const {
  const std::string h = layer(i);
  Tensor x = x0;
  {
    Scope s("attention");
    const Tensor a = layer_norm(p, h + ".ln_1", x, eps_);
    const std::string qkv = h + ".attn.c_attn";
    const AttentionSettings settings{.scale = scale_of(i), .dropout = attention_dropout_};
    const AttentionBlock attention = {{qkv, "q"},         {qkv, "k"}, {qkv, "v"},
                                      h + ".attn.c_proj", heads_,     settings};
    const Tensor out = self_attention(p, attention, o, i, a, in.key_mask);
    x = x + dropout(o, "attention_out", residual_dropout_, residual(o, out));
  }
  if (cross_) x = attend_to_memory(p, in, o, i, x);
  Scope s("mlp");
  const Tensor m = gather_tokens(o, layer_norm(p, h + ".ln_2", x, eps_));
  const Tensor f = activate(activation_, dense(p, h + ".mlp.c_fc", m, o));
  return x + dropout(o, "mlp_out", residual_dropout_, residual(o, dense(p, h + ".mlp.c_proj", f, o)));
}

Tensor Gpt2Decoder::attend_to_memory(const ParamTree& p, const DecoderInputs& in, const ApplyOptions& o,
                                     i64 i, const Tensor& x) const {
  Scope s("cross_attention");
  const std::string h = layer(i), c = h + ".crossattention.";
  const AttentionSettings settings{.scale = scale_of(i), .causal = false, .dropout = attention_dropout_};
  const AttentionBlock attention = {
      c + "q_attn", {c + "c_attn", "k"}, {c + "c_attn", "v"}, c + "c_proj", heads_, settings};
  const Tensor a = layer_norm(p, h + ".ln_cross_attn", x, eps_);
  const Tensor out = cross_attention(p, attention, o, i, a, in.memory, in.memory_mask);
  return x + dropout(o, "cross_attention_out", residual_dropout_, residual(o, out));
}

namespace {

class Gpt2 : public Model {
 public:
  explicit Gpt2(ModelConfig& c) : decoder_(c) {
    family_ = "gpt2";
    vocab_size_ = decoder_.vocab_size();
    hidden_size_ = decoder_.width();
    max_length_ = decoder_.max_length();
    n_layers_ = decoder_.layers();
    c.finish();
    SpecBuilder b(params_);
    decoder_.declare(b);
    config_json_ = c.dump();
  }
  Tensor decode(const ParamTree& p, const DecoderInputs& in, const ApplyOptions& o) const override {
    return decoder_.apply(p, in, o);
  }
  std::string canonical_name(const std::string& stored) const override {
    return Gpt2Decoder::canonical_name(stored);
  }

 private:
  Gpt2Decoder decoder_;
};

}  // namespace

std::unique_ptr<Model> make_gpt2(ModelConfig& c) { return std::make_unique<Gpt2>(c); }

}  // namespace redco
