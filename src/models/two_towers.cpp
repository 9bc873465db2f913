// Two towers: CLIP (Radford et al. 2021) and SigLIP (Zhai et al. 2023). One tower embeds images, the other
// texts; a learned scale (and SigLIP's bias) makes logits of the products of normed embeddings. B batch, T
// tokens, C width of a tower, D size of an embedding.
#include <fmt/format.h>

#include <cmath>

#include "models/attention_block.h"
#include "models/families.h"
#include "models/vit.h"
#include "ops/create.h"
#include "ops/elementwise.h"
#include "ops/embedding.h"
#include "ops/order.h"
#include "ops/reduce.h"
#include "ops/shape.h"

namespace redco {

namespace {

// The differences of the families.
struct TowerSwitches {
  std::string family;
  bool causal_text;        // else each token attends to all
  bool pools_end_token;    // else the last position, so a text is padded to the full length
  bool projections;        // of both towers, without bias; else a head of the texts, with bias
  bool pooling_attention;  // a probe that attends to all patches; else the class token
  bool logit_bias;
  i64 default_patch, default_length, default_text_width, default_text_inner, default_text_heads;
  i64 default_vocabulary;
  double default_eps;
  std::string default_activation;
};

TowerSwitches clip() {
  return {.family = "clip",
          .causal_text = true,
          .pools_end_token = true,
          .projections = true,
          .pooling_attention = false,
          .logit_bias = false,
          .default_patch = 32,
          .default_length = 77,
          .default_text_width = 512,
          .default_text_inner = 2048,
          .default_text_heads = 8,
          .default_vocabulary = 49408,
          .default_eps = 1e-5,
          .default_activation = "quick_gelu"};
}

TowerSwitches siglip() {
  return {.family = "siglip",
          .causal_text = false,
          .pools_end_token = false,
          .projections = false,
          .pooling_attention = true,
          .logit_bias = true,
          .default_patch = 16,
          .default_length = 64,
          .default_text_width = 768,
          .default_text_inner = 3072,
          .default_text_heads = 12,
          .default_vocabulary = 32000,
          .default_eps = 1e-6,
          .default_activation = "gelu_pytorch_tanh"};
}

PreNormNames tower_names() {
  return {.layer = "encoder.layers",
          .query = "self_attn.q_proj",
          .key = "self_attn.k_proj",
          .value = "self_attn.v_proj",
          .out = "self_attn.out_proj",
          .first_norm = "layer_norm1",
          .second_norm = "layer_norm2",
          .up = "mlp.fc1",
          .down = "mlp.fc2"};
}

double inverse_root(i64 n) { return 1 / std::sqrt(static_cast<double>(n)); }
// Of a uniform distribution as Glorot and Bengio (2010) draw it.
double xavier(i64 in, i64 out) { return std::sqrt(2.0 / static_cast<double>(in + out)); }

// The initial weights of transformers' classes.
PreNormStds stds_of(const TowerSwitches& s, i64 width, i64 inner, i64 layers, double factor) {
  if (!s.causal_text)
    return {xavier(width, width), xavier(width, width), xavier(width, inner), xavier(inner, width)};
  const double deep = inverse_root(width) * inverse_root(2 * std::max<i64>(layers, 1)) * factor;
  return {deep, inverse_root(width) * factor, inverse_root(2 * width) * factor, deep};
}

class ImageTower {
 public:
  ImageTower(ModelConfig& c, const TowerSwitches& s) : s_(s), encoder_(c, "vision_model.", switches(c, s)) {
    if (s.pooling_attention) c.expect("vision_use_head", {"true"});
    c.inert({"projection_dim"});  // the whole model's counts
  }
  void declare(SpecBuilder& b, ModelParams& params) const {
    encoder_.declare(b);
    if (!s_.pooling_attention) return;
    const i64 C = encoder_.width();
    const auto [H, K, D] = encoder_.settings().heads;
    const HeadsOf q{0, H, K, D, false}, kv{0, H, K, D, true}, o{1, H, K, D, false};
    b.add(kHead + "probe", {1, 1, C}, ParamKind::other, {Init::Kind::normal, xavier(C, C)});
    const size_t first = params.specs.size();
    b.fused(kHead + "attention.in_proj", {{"q", C, q}, {"k", C, kv}, {"v", C, kv}}, C, true, xavier(C, 3 * C),
            false);
    for (size_t i = first; i < params.specs.size(); ++i) {  // PyTorch's names in MultiheadAttention
      ParamSpec& spec = params.specs[i];
      spec.stored.name = kHead + "attention.in_proj_" + (spec.kind == ParamKind::bias ? "bias" : "weight");
    }
    b.linear(kHead + "attention.out_proj", C, C, true, inverse_root(C), false, o);
    b.norm(kHead + "layernorm", C, true);
    const i64 inner = encoder_.settings().inner;
    b.linear(kHead + "mlp.fc1", inner, C, true, xavier(C, inner)).role = Role::first;
    b.linear(kHead + "mlp.fc2", C, inner, true, xavier(C, inner)).role = Role::second;
  }
  Tensor run(const ParamTree& p, const Tensor& pixels, const ApplyOptions& o) const {
    return encoder_.run(p, pixels, o);
  }
  // x [B, patches, C] -> [B, C].
  Tensor pool(const ParamTree& p, const Tensor& x, const ApplyOptions& o) const {
    const i64 B = x.size(0), C = encoder_.width();
    if (!s_.pooling_attention) return encoder_.last_norm(p, reshape(narrow(x, 1, 0, 1), {B, C}));
    const PreNormSettings& layer = encoder_.settings();
    const std::string in = kHead + "attention.in_proj";
    const AttentionBlock attention = {
        {in, "q"},   {in, "k"},
        {in, "v"},   kHead + "attention.out_proj",
        layer.heads, {.scale = inverse_root(layer.heads.head_dim), .causal = false}};
    ApplyOptions own = o;
    own.cache = nullptr;
    const Tensor probe = broadcast_to(p[kHead + "probe"], {B, 1, C});
    const Tensor y = cross_attention(p, attention, own, 0, probe, x, {});
    const Tensor up = dense(p, kHead + "mlp.fc1", layer_norm(p, kHead + "layernorm", y, layer.eps), own);
    return reshape(y + dense(p, kHead + "mlp.fc2", activate(layer.activation, up), own), {B, C});
  }
  const VitEncoder& encoder() const { return encoder_; }

 private:
  static VitSwitches switches(ModelConfig& c, const TowerSwitches& s) {
    VitSwitches v;
    v.family = s.family;
    v.tokens.clear();
    if (!s.pooling_attention) v.tokens = {"class_embedding"};
    v.names = tower_names();
    v.patches = "patch_embedding";
    v.positions = "position_embedding.weight";
    v.plain_tables = true;
    v.patch_bias = s.pooling_attention;
    if (!s.pooling_attention) v.first_norm = "pre_layrnorm";  // so spelled
    v.last_norm = "post_layernorm";
    v.norm_of_output = s.pooling_attention;
    v.default_patch = s.default_patch;
    v.default_eps = s.default_eps;
    v.default_activation = s.default_activation;
    v.attention_dropout = "attention_dropout";
    v.std = stds_of(s, c.integer_or("hidden_size", 768), c.integer_or("intermediate_size", 3072),
                    c.integer_or("num_hidden_layers", 12, 0), c.number_or("initializer_factor", 1));
    return v;
  }
  const std::string kHead = "vision_model.head.";
  TowerSwitches s_;
  VitEncoder encoder_;
};

class TextTower {
 public:
  TextTower(ModelConfig& c, const TowerSwitches& s)
      : s_(s),
        vocab_size_(c.integer_or("vocab_size", s.default_vocabulary)),
        length_(c.integer_or("max_position_embeddings", s.default_length)),
        projection_(c.integer_or("projection_size", c.integer_or("hidden_size", s.default_text_width))),
        // A config that is older than transformers 4.31 has 2 here, whatever the vocabulary.
        end_(c.token_or("eos_token_id", s.pools_end_token ? 49407 : -1, std::max<i64>(vocab_size_, 49408))),
        pad_(c.token_or("pad_token_id", 1, std::max<i64>(vocab_size_, 49408))),
        stack_("text_model.", layers(c, s)) {
    c.inert({"projection_dim", "bos_token_id"});
  }
  void declare(SpecBuilder& b) const {
    const i64 C = width();
    const double std = s_.causal_text ? 0.02 : inverse_root(C);
    b.embedding("text_model.embeddings.token_embedding.weight", vocab_size_, C, std);
    b.positions("text_model.embeddings.position_embedding.weight", length_, C, std);
    stack_.declare(b);
    b.norm("text_model.final_layer_norm", C, true);
    if (!s_.projections) b.linear("text_model.head", projection_, C, true, inverse_root(C)).cut = -1;
  }
  // [B, T] -> [B, T, C]
  Tensor run(const ParamTree& p, const EncoderInputs& in, const ApplyOptions& o) const {
    const Tensor& ids = in.input_ids;
    Tensor x;
    {
      Scope s("embedding");
      const Tensor positions = reshape(arange(ids.size(1)), {1, ids.size(1)});
      x = embedding(p["text_model.embeddings.token_embedding.weight"], ids) +
          embedding(p["text_model.embeddings.position_embedding.weight"], positions);
      x = activation(o, "embedding", residual(o, x));
    }
    x = stack_.run(p, x, in.key_mask, o);
    return activation(
        o, "final_norm",
        gather_tokens(o, layer_norm(p, "text_model.final_layer_norm", x, stack_.settings().eps)));
  }
  // x [B, T, C] -> [B, C]: the first end token of each row, or the last position.
  Tensor pool(const ParamTree& p, const Tensor& ids, const Tensor& x, const ApplyOptions& o) const {
    const i64 B = x.size(0), T = x.size(1), C = width();
    if (!s_.pools_end_token) return dense(p, "text_model.head", reshape(narrow(x, 1, T - 1, 1), {B, C}), o);
    // In configs with the old id the end token is the one with the highest number.
    const Tensor found =
        end_ == 2 ? to_float(ids, DType::f64) : equal(ids, from_ids({1, 1}, std::vector<i32>{end_}));
    const Tensor chosen = one_hot(argmax(found), T, x.dtype());
    return sum(x * reshape(chosen, {B, T, 1}), {1});
  }

  i64 width() const { return stack_.settings().width; }
  i64 layers() const { return stack_.settings().layers; }
  i64 vocab_size() const { return vocab_size_; }
  i64 length() const { return length_; }
  i64 projection() const { return projection_; }
  i32 pad() const { return pad_ < vocab_size_ ? pad_ : -1; }

 private:
  static PreNormSettings layers(ModelConfig& c, const TowerSwitches& s) {
    const i64 width = c.integer_or("hidden_size", s.default_text_width),
              inner = c.integer_or("intermediate_size", s.default_text_inner),
              layers = c.integer_or("num_hidden_layers", 12, 0),
              H = c.integer_or("num_attention_heads", s.default_text_heads);
    if (width % H != 0)
      c.fail("num_attention_heads", fmt::format("expected a divisor of hidden_size={}", width));
    c.inert({"initializer_range"});  // the texts' weights follow the width
    return {.names = tower_names(),
            .width = width,
            .layers = layers,
            .inner = inner,
            .heads = {H, H, width / H},
            .activation = c.activation_or("hidden_act", s.default_activation),
            .eps = c.positive_or("layer_norm_eps", s.default_eps),
            .std = stds_of(s, width, inner, layers, c.number_or("initializer_factor", 1)),
            .causal = s.causal_text,
            .attention_dropout = c.rate_or("attention_dropout", 0)};
  }
  TowerSwitches s_;
  i64 vocab_size_, length_, projection_;
  i32 end_, pad_;
  PreNormStack stack_;
};

class TwoTowers : public Model {
 public:
  TwoTowers(ModelConfig& c, ModelConfig& text, ModelConfig& image, const TowerSwitches& s)
      : s_(s), text_(text, s), image_(image, s) {
    family_ = s.family;
    task_ = ModelTask::image_text_contrastive;
    vocab_size_ = text_.vocab_size();
    max_length_ = text_.length();
    n_layers_ = text_.layers();
    pad_token_id_ = text_.pad();
    image_shape_ = image_.encoder().image_shape();
    pads_texts_ = !s.pools_end_token;
    const i64 C = image_.encoder().width();
    num_labels_ = s.projections ? c.integer_or("projection_dim", 512) : C;
    if (!s.projections && text_.projection() != C)
      text.fail("projection_size",
                fmt::format("texts have embeddings of {} numbers, images of {}", text_.projection(), C));
    const double factor = c.number_or("initializer_factor", 1);
    const double scale = s.logit_bias ? std::log(10.0) : c.number_or("logit_scale_init_value", 2.6592);
    text.finish();
    image.finish();
    c.finish();

    SpecBuilder b(params_);
    text_.declare(b);
    image_.declare(b, params_);
    if (s.projections) {
      const auto project = [&](const char* name, i64 width) {
        b.linear(name, num_labels_, width, false, inverse_root(width) * factor).cut = -1;
      };
      project("visual_projection", C);
      project("text_projection", text_.width());
    }
    ParamSpec& logit_scale = b.add("logit_scale", {1}, ParamKind::bias, {Init::Kind::constant, scale});
    if (!s.logit_bias) logit_scale.stored.shape = {};  // SigLIP stores vectors of one number
    if (s.logit_bias) b.add("logit_bias", {1}, ParamKind::bias, {Init::Kind::constant, -10});
    config_json_ = c.dump();
  }

  // [B, D] of the images, or else of the texts, not scaled to length 1. Without head the tower's last hidden
  // state.
  Tensor encode_outputs(const ParamTree& p, const EncoderInputs& in, const ApplyOptions& o) const override {
    const bool images = in.pixel_values.defined();
    const Tensor x = images ? image_.run(p, in.pixel_values, o) : text_.run(p, in, o);
    if (!o.head) return x;
    Scope scope("embedding_head");
    const Tensor pooled =
        activation(o, "pooled", images ? image_.pool(p, x, o) : text_.pool(p, in.input_ids, x, o));
    return s_.projections ? dense(p, images ? "visual_projection" : "text_projection", pooled, o) : pooled;
  }

  // Files of older versions hold the numbers of the positions.
  std::string canonical_name(const std::string& stored) const override {
    return stored.ends_with("embeddings.position_ids") ? "" : stored;
  }

 private:
  TowerSwitches s_;
  TextTower text_;
  ImageTower image_;
};

std::unique_ptr<Model> make_towers(ModelConfig& c, const TowerSwitches& s) {
  ModelConfig text = c.part_or_defaults("text_config", s.family + "_text_model"),
              image = c.part_or_defaults("vision_config", s.family + "_vision_model");
  return std::make_unique<TwoTowers>(c, text, image, s);
}

}  // namespace

std::unique_ptr<Model> make_clip(ModelConfig& c) { return make_towers(c, clip()); }
std::unique_ptr<Model> make_siglip(ModelConfig& c) { return make_towers(c, siglip()); }

}  // namespace redco
