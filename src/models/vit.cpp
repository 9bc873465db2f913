#include "models/vit.h"

#include <fmt/format.h>

#include <cmath>

#include "models/attention_block.h"
#include "models/families.h"
#include "ops/elementwise.h"
#include "ops/shape.h"

namespace redco {

VitEncoder::VitEncoder(ModelConfig& c, std::string prefix) : prefix_(std::move(prefix)) {
  width_ = c.integer_or("hidden_size", 768);
  layers_ = c.integer_or("num_hidden_layers", 12, 0);
  inner_ = c.integer_or("intermediate_size", 3072);
  const i64 H = c.integer_or("num_attention_heads", 12);
  if (width_ % H != 0)
    c.fail("num_attention_heads", fmt::format("expected a divisor of hidden_size={}", width_));
  heads_ = {H, H, width_ / H};
  patches_ = read_patch_grid(c);
  activation_ = c.activation_or("hidden_act", "gelu");
  dropout_ = c.rate_or("hidden_dropout_prob", 0);
  attention_dropout_ = c.rate_or("attention_probs_dropout_prob", 0);
  qkv_bias_ = c.boolean_or("qkv_bias", true);
  eps_ = c.positive_or("layer_norm_eps", 1e-12);
  std_ = c.number_or("initializer_range", 0.02);
  c.inert({"encoder_stride"});  // of masked image modelling
}

std::string VitEncoder::layer(i64 i) const { return at(fmt::format("encoder.layer.{}", i)); }

void VitEncoder::declare(SpecBuilder& b) const {
  const auto [H, K, D] = heads_;
  const HeadsOf q{0, H, K, D, false}, kv{0, H, K, D, true}, o{1, H, K, D, false};
  b.add(at("embeddings.cls_token"), {1, 1, width_}, ParamKind::other, {Init::Kind::normal, std_});
  b.add(at("embeddings.position_embeddings"), {1, positions(), width_}, ParamKind::embedding,
        {Init::Kind::normal, std_});
  declare_patches(b, at("embeddings.patch_embeddings.projection"), patches_, width_, std_);
  for (i64 i = 0; i < layers_; ++i) {
    const std::string h = layer(i), a = h + ".attention.";
    b.linear(a + "attention.query", width_, width_, qkv_bias_, std_, false, q);
    b.linear(a + "attention.key", width_, width_, qkv_bias_, std_, false, kv);
    b.linear(a + "attention.value", width_, width_, qkv_bias_, std_, false, kv);
    b.linear(a + "output.dense", width_, width_, true, std_, false, o);
    b.linear(h + ".intermediate.dense", inner_, width_, true, std_).role = Role::first;
    b.linear(h + ".output.dense", width_, inner_, true, std_).role = Role::second;
    b.norm(h + ".layernorm_before", width_, true);
    b.norm(h + ".layernorm_after", width_, true);
  }
  b.norm(at("layernorm"), width_, true);
}

Tensor VitEncoder::embed(const ParamTree& p, const Tensor& pixels) const {
  const Tensor patches = embed_patches(p, at("embeddings.patch_embeddings.projection"), patches_, pixels);
  const Tensor first = broadcast_to(p[at("embeddings.cls_token")], {pixels.size(0), 1, width_});
  return concat({first, patches}, 1) + p[at("embeddings.position_embeddings")];
}

Tensor VitEncoder::block(const ParamTree& p, const ApplyOptions& o, i64 i, const Tensor& x0) const {
  const std::string h = layer(i), a = h + ".attention.";
  Tensor x = x0;
  {
    Scope s("attention");
    const AttentionSettings settings{.scale = 1 / std::sqrt(static_cast<double>(heads_.head_dim)),
                                     .causal = false,
                                     .dropout = attention_dropout_};
    const AttentionBlock attention = {a + "attention.query",
                                      a + "attention.key",
                                      a + "attention.value",
                                      a + "output.dense",
                                      heads_,
                                      settings};
    const Tensor y = self_attention(p, attention, o, i, layer_norm(p, h + ".layernorm_before", x, eps_), {});
    x = x + dropout(o, "attention_out", dropout_, residual(o, activation(o, i, ".attention", y)));
  }
  Scope s("mlp");
  const Tensor m = gather_tokens(o, layer_norm(p, h + ".layernorm_after", x, eps_));
  const Tensor f = activate(activation_, dense(p, h + ".intermediate.dense", m, o));
  const Tensor y = activation(o, i, ".mlp", dense(p, h + ".output.dense", f, o));
  return x + dropout(o, "mlp_out", dropout_, residual(o, y));
}

Tensor VitEncoder::run(const ParamTree& p, const Tensor& pixels, const ApplyOptions& o) const {
  Tensor x;
  {
    Scope s("embedding");
    x = dropout(o, prefix_ + "embedding", dropout_, residual(o, embed(p, pixels)));
    x = activation(o, "embedding", x);
  }
  ApplyOptions own = o;
  own.cache = nullptr;
  for (i64 i = 0; i < layers_; ++i) {
    if (o.hidden_states) o.hidden_states->push_back(x);
    x = run_block(p, o, layer(i), x, [this, own, i](const ParamTree& params, const Tensor& h) {
      return block(params, own, i, h);
    });
    x = activation(o, i, "", x);
  }
  if (o.hidden_states) o.hidden_states->push_back(x);  // before the last norm
  return activation(o, "final_norm", gather_tokens(o, layer_norm(p, at("layernorm"), x, eps_)));
}

namespace {

class Vit : public Model {
 public:
  explicit Vit(ModelConfig& c) : encoder_(c, "vit.") {
    family_ = "vit";
    task_ = ModelTask::image_classification;
    n_layers_ = encoder_.layers();
    max_length_ = encoder_.positions();
    c.expect("architectures", {"[\"ViTForImageClassification\"]", "[]"});
    c.inert({"pooler_act", "pooler_output_size", "tie_word_embeddings"});  // no pooler here
    const i64 labels = num_labels_ = c.labels();
    hidden_size_ = encoder_.width();
    problem_type_ = c.text_or("problem_type", "");
    image_shape_ = encoder_.image_shape();
    c.finish();
    SpecBuilder b(params_);
    encoder_.declare(b);
    b.linear("classifier", labels, encoder_.width(), true, encoder_.init_std());
    config_json_ = c.dump();
  }

  // [B, labels], from the class token.
  Tensor encode_outputs(const ParamTree& p, const EncoderInputs& in, const ApplyOptions& o) const override {
    const Tensor x = encoder_.run(p, in.pixel_values, o);
    if (!o.head) return x;
    Scope s("classifier");
    return dense(p, "classifier", reshape(narrow(x, 1, 0, 1), {x.size(0), encoder_.width()}), o);
  }

  // ViTModel saves names without the prefix, and a pooler, which image classification does not have.
  std::string canonical_name(const std::string& stored) const override {
    std::string name = stored;
    for (const char* start : {"embeddings.", "encoder.", "layernorm.", "pooler."})
      if (stored.starts_with(start)) name = "vit." + stored;
    return name.starts_with("vit.pooler.") ? "" : name;
  }

 private:
  VitEncoder encoder_;
};

}  // namespace

std::unique_ptr<Model> make_vit(ModelConfig& c) { return std::make_unique<Vit>(c); }

}  // namespace redco
