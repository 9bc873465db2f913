// CLIP (Radford et al. 2021) and SigLIP (Zhai et al. 2023): an image tower and a text tower, whose pooled
// outputs are embeddings in one space; or one of the towers alone. The images' and texts' encoders are
// models/vit.h and models/encoder. Legend: B batch, S tokens, C width, D embedding.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "models/config_tree.h"
#include "models/encoder/encoder.h"
#include "models/encoder/families.h"
#include "models/families.h"
#include "models/vit.h"
#include "ops/create.h"
#include "ops/elementwise.h"
#include "ops/order.h"
#include "ops/reduce.h"
#include "ops/shape.h"

namespace redco {

namespace {

constexpr const char *kText = "text_model.", *kImage = "vision_model.";

VitSwitches image_tower_switches(bool siglip) {
  VitSwitches s;
  s.tokens = siglip ? std::vector<std::string>() : std::vector<std::string>{"class_embedding"};
  s.patches = "embeddings.patch_embedding";
  s.positions = "embeddings.position_embedding.weight";
  s.flat = true;
  s.remainder = true;  // published: 384 pixels in patches of 14
  s.layers = "encoder.layers";
  s.q = "self_attn.q_proj";
  s.k = "self_attn.k_proj";
  s.v = "self_attn.v_proj";
  s.out = "self_attn.out_proj";
  s.first_norm = "layer_norm1";
  s.second_norm = "layer_norm2";
  s.up = "mlp.fc1";
  s.down = "mlp.fc2";
  s.final_norm = "post_layernorm";
  s.attention_dropout = "attention_dropout";
  if (siglip) {
    s.default_patch = 16;
    s.default_eps = 1e-6;
    s.default_activation = "gelu_pytorch_tanh";
    s.pooling_head = "head";
  } else {
    s.default_patch = 32;
    s.default_eps = 1e-5;
    s.default_activation = "quick_gelu";
    s.input_norm = "pre_layrnorm";
    s.patch_bias = false;
    s.norm_pooled = true;
  }
  return s;
}

class DualEncoder : public Model {
 public:
  explicit DualEncoder(ModelConfig& c) {
    family_ = c.text_or("model_type", "clip");
    siglip_ = family_.starts_with("siglip");
    task_ = ModelTask::image_text_contrastive;
    const bool both = family_ == "clip" || family_ == "siglip";
    if (both) {
      const std::string base = family_;
      ModelConfig text = c.part_or_defaults("text_config", base + "_text_model"),
                  vision = c.part_or_defaults("vision_config", base + "_vision_model");
      if (!siglip_) num_labels_ = c.integer_or("projection_dim", 512);
      projects_ = !siglip_;
      read_text(text);
      read_image(vision);
      text.finish();
      vision.finish();
      if (siglip_ && num_labels_ != image_->width())
        c.fail("text_config",
               fmt::format("projection_size={} is the width of text embeddings, and hidden_size={} in "
                           "vision_config that of images; expected equal numbers",
                           num_labels_, image_->width()));
      scale_ = c.number_or("logit_scale_init_value", siglip_ ? 2.302585092994046 : 2.6592);  // SigLIP: log 10
    } else {
      read_projection(c);
      if (projects_) num_labels_ = c.integer_or("projection_dim", 512);
      if (family_.ends_with("text_model"))
        read_text(c);
      else
        read_image(c);
    }
    c.inert({"initializer_factor"});
    c.finish();
    declare(both);
    if (!both) hidden_size_ = text_ ? text_->hidden_size() : image_->width();
    config_json_ = c.dump();
  }

  // Of an image or a text: [B, D]. Without head [B, S, C], the tower's last hidden state.
  Tensor encode_outputs(const ParamTree& p, const EncoderInputs& in, const ApplyOptions& o) const override {
    const bool image = in.pixel_values.defined();
    if (image ? !image_ : !text_)
      throw UsageError("[model] the model {} embeds {}, and got {}", family_, image_ ? "images" : "texts",
                       image ? "images" : "texts");
    const Tensor x = image ? image_->run(p, in.pixel_values, o) : text_->encode_outputs(p, in, o);
    if (!o.head) return x;
    const Tensor y =
        activation(o, "pooled", image ? image_->pool(p, x, o) : pool_text(p, x, in.input_ids, o));
    return projects_ ? dense(p, image ? "visual_projection" : "text_projection", y, o) : y;
  }

  // Towers alone may lack the prefix. Buffers of positions are not read.
  std::string canonical_name(const std::string& stored) const override {
    if (stored.ends_with("embeddings.position_ids")) return "";
    std::string name = stored;
    if (!(text_ && image_))
      for (const char* start :
           {"embeddings.", "encoder.", "final_layer_norm.", "head.", "pre_layrnorm.", "post_layernorm."})
        if (stored.starts_with(start)) name = (text_ ? kText : kImage) + stored;
    return name;
  }

 private:
  void read_text(ModelConfig& c) {
    EncoderArchitecture a = read_clip_text(c);
    vocab_size_ = a.vocab_size;
    max_length_ = a.max_length;
    n_layers_ = static_cast<i64>(a.layers.size());
    pad_token_id_ = c.token_or("pad_token_id", 1, vocab_size_);
    if (siglip_) {
      pads_texts_ = true;
      num_labels_ = c.integer_or("projection_size", a.width);
    } else {
      end_token_ = c.token_or("eos_token_id", 49407, kNoLimit);
      if (!projects_) num_labels_ = a.width;
    }
    c.inert({"projection_dim", "initializer_factor"});
    text_ = make_text_encoder(c, std::move(a));
  }

  void read_image(ModelConfig& c) {
    c.expect("vision_use_head", {"true"});
    c.inert({"projection_dim", "initializer_factor"});
    image_.emplace(c, kImage, image_tower_switches(siglip_));
    image_shape_ = image_->image_shape();
    if (!text_) max_length_ = image_->positions();
    if (!text_) n_layers_ = image_->layers();
    if (num_labels_ == 0) num_labels_ = image_->width();
  }

  // Whether a tower alone has the projection: by its class.
  void read_projection(ModelConfig& c) {
    const auto names = nlohmann::json::parse(c.json("architectures"));
    const std::string classes = std::string(siglip_ ? "Siglip" : "CLIP") +
                                (family_.ends_with("text_model") ? "TextModel" : "VisionModel");
    const bool absent = names.is_null() || (names.is_array() && names.empty());
    projects_ = !siglip_ && names == nlohmann::json{classes + "WithProjection"};
    if (!absent && !projects_ && names != nlohmann::json{classes})
      c.fail("architectures", fmt::format("not supported; supported: {}{}", classes,
                                          siglip_ ? "" : ", " + classes + "WithProjection"));
  }

  void declare(bool both) {
    SpecBuilder b(params_);
    const double std = 0.02;
    if (text_) {
      params_ = text_->params();
      const i64 width = text_->hidden_size();
      if (siglip_) b.linear(std::string(kText) + "head", num_labels_, width, true, std);
      if (projects_) b.linear("text_projection", num_labels_, width, false, std);
    }
    if (image_) {
      image_->declare(b);
      if (projects_) b.linear("visual_projection", num_labels_, image_->width(), false, std);
    }
    if (!both) return;
    ParamSpec& scale = b.add("logit_scale", {1}, ParamKind::bias, {Init::Kind::constant, scale_});
    if (!siglip_) scale.stored.shape = {};  // CLIP's is a scalar
    if (siglip_) b.add("logit_bias", {1}, ParamKind::bias, {Init::Kind::constant, -10});
  }

  // [B, S, C] -> [B, C]. SigLIP: the last token, which may be padding. CLIP: the first end token; with
  // eos_token_id 2, which early configs have, the token with the largest id.
  Tensor pool_text(const ParamTree& p, const Tensor& x, const Tensor& ids, const ApplyOptions& o) const {
    Scope scope("pooling");
    const i64 B = x.size(0), S = x.size(1), C = x.size(2);
    if (siglip_) return dense(p, std::string(kText) + "head", reshape(narrow(x, 1, S - 1, 1), {B, C}), o);
    const Tensor scores = end_token_ == 2 ? to_float(ids, DType::f64)
                                          : equal(ids, from_ids({1, 1}, std::vector<i32>{end_token_}));
    return sum(x * reshape(one_hot(argmax(scores), S, x.dtype()), {B, S, 1}), {1});
  }

  std::unique_ptr<TextEncoder> text_;  // null: no such tower
  std::optional<VitEncoder> image_;
  bool siglip_ = false, projects_ = false;
  i32 end_token_ = -1;
  double scale_ = 0;
};

}  // namespace

// The vocabulary is the text tower's.
void add_towers(ConfigTree& config) {
  nlohmann::ordered_json& j = config.json;
  const std::string family = j["model_type"];
  nlohmann::ordered_json& text = j["text_config"] = {{"model_type", family + "_text_model"}};
  j["vision_config"] = {{"model_type", family + "_vision_model"}};
  for (const char* key : {"vocab_size", "bos_token_id", "eos_token_id", "pad_token_id"})
    if (j.contains(key)) text[key] = std::exchange(j[key], nullptr), j.erase(key);
}

std::unique_ptr<Model> make_dual_encoder(ModelConfig& c) { return std::make_unique<DualEncoder>(c); }

}  // namespace redco
