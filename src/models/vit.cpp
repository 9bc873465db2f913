#include "models/vit.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "models/families.h"
#include "ops/elementwise.h"
#include "ops/reduce.h"
#include "ops/shape.h"

namespace redco {

namespace {

// DINOv2's gated MLPs have two thirds of the width, rounded up to a multiple of 8.
i64 read_inner(ModelConfig& c, const VitSwitches& s, i64 width) {
  if (s.branch_scale == 0) return c.integer_or("intermediate_size", 3072);
  const double ratio = c.number_or("mlp_ratio", 4);
  const i64 inner = static_cast<i64>(static_cast<double>(width) * ratio);
  if (ratio <= 0 || ratio > 1024 || inner < 1) c.fail("mlp_ratio", "expected a number above 0");
  return s.names.gate_up.empty() ? inner : (inner * 2 / 3 + 7) / 8 * 8;
}

}  // namespace

namespace {

PreNormSettings read_layers(ModelConfig& c, const VitSwitches& s) {
  const i64 width = c.integer_or("hidden_size", 768), layers = c.integer_or("num_hidden_layers", 12, 0);
  const i64 inner = read_inner(c, s, width), H = c.integer_or("num_attention_heads", 12);
  if (width % H != 0)
    c.fail("num_attention_heads", fmt::format("expected a divisor of hidden_size={}", width));
  const double std = c.number_or("initializer_range", 0.02), dropout = c.rate_or("hidden_dropout_prob", 0);
  return {.names = s.names,
          .width = width,
          .layers = layers,
          .inner = inner,
          .heads = {H, H, width / H},
          .activation = c.activation_or("hidden_act", s.default_activation),
          .eps = c.positive_or("layer_norm_eps", s.default_eps),
          .std = s.std.value_or(PreNormStds{std, std, std, std}),
          .qkv_bias = c.boolean_or("qkv_bias", true),
          .branch_dropout = s.branch_scale > 0 ? 0 : dropout,  // DINOv2 drops embeddings only
          .attention_dropout = c.rate_or(s.attention_dropout, 0),
          .branch_scale = s.branch_scale};
}

}  // namespace

VitEncoder::VitEncoder(ModelConfig& c, std::string prefix, VitSwitches switches)
    : prefix_(std::move(prefix)),
      switches_(std::move(switches)),
      std_(c.number_or("initializer_range", 0.02)),
      dropout_(c.rate_or("hidden_dropout_prob", 0)),
      patches_(read_patch_grid(c, switches_.default_patch)),
      stack_(prefix_, read_layers(c, switches_)) {
  c.inert({"encoder_stride"});  // of masked image modelling
}

void VitEncoder::declare(SpecBuilder& b) const {
  const i64 C = width();
  const bool plain = switches_.plain_tables;
  for (const std::string& token : switches_.tokens)
    b.add(at("embeddings." + token), plain ? Shape{C} : Shape{1, 1, C}, ParamKind::other,
          {Init::Kind::normal, std_});
  if (switches_.mask_token) b.buffer(at("embeddings.mask_token"), {1, C}, ParamKind::other);
  b.add(at("embeddings." + switches_.positions), plain ? Shape{positions(), C} : Shape{1, positions(), C},
        ParamKind::embedding, {Init::Kind::normal, std_});
  declare_patches(b, at("embeddings." + switches_.patches), patches_, C, std_, switches_.patch_bias);
  if (!switches_.first_norm.empty()) b.norm(at(switches_.first_norm), C, true);
  stack_.declare(b);
  b.norm(at(switches_.last_norm), C, true);
}

Tensor VitEncoder::embed(const ParamTree& p, const Tensor& pixels) const {
  const Tensor patches = embed_patches(p, at("embeddings." + switches_.patches), patches_, pixels);
  std::vector<Tensor> parts;
  for (const std::string& token : switches_.tokens)
    parts.push_back(broadcast_to(p[at("embeddings." + token)], {pixels.size(0), 1, width()}));
  parts.push_back(patches);
  const Tensor all = parts.size() == 1 ? parts[0] : concat(parts, 1);
  const Tensor x = all + p[at("embeddings." + switches_.positions)];
  return switches_.first_norm.empty() ? x : layer_norm(p, at(switches_.first_norm), x, settings().eps);
}

Tensor VitEncoder::last_norm(const ParamTree& p, const Tensor& x) const {
  return layer_norm(p, at(switches_.last_norm), x, settings().eps);
}

Tensor VitEncoder::run(const ParamTree& p, const Tensor& pixels, const ApplyOptions& o) const {
  Tensor x;
  {
    Scope s("embedding");
    x = dropout(o, prefix_ + "embedding", dropout_, residual(o, embed(p, pixels)));
    x = activation(o, "embedding", x);
  }
  x = stack_.run(p, x, {}, o);
  return activation(o, "final_norm", gather_tokens(o, switches_.norm_of_output ? last_norm(p, x) : x));
}

namespace {

class Vit : public Model {
 public:
  Vit(ModelConfig& c, const VitSwitches& switches) : encoder_(c, switches.family + ".", switches) {
    family_ = switches.family;
    n_layers_ = encoder_.layers();
    max_length_ = encoder_.positions();
    hidden_size_ = encoder_.width();
    image_shape_ = encoder_.image_shape();
    read_task(c);
    c.inert({"pooler_act", "pooler_output_size", "tie_word_embeddings"});  // no pooler here
    const i64 labels = c.labels();
    problem_type_ = c.text_or("problem_type", "");
    c.finish();
    SpecBuilder b(params_);
    encoder_.declare(b);
    if (!heads_.empty()) num_labels_ = labels;
    for (const std::string& head : heads_)
      b.linear(head, labels, encoder_.width() * (switches.mean_of_patches ? 2 : 1), true,
               encoder_.init_std());
    config_json_ = c.dump();
  }

  // [B, labels]: the mean of the heads, of which each reads the token of its index; without heads the last
  // hidden state.
  Tensor encode_outputs(const ParamTree& p, const EncoderInputs& in, const ApplyOptions& o) const override {
    const Tensor x = encoder_.run(p, in.pixel_values, o);
    if (!o.head || heads_.empty()) return x;
    Scope s("classifier");
    Tensors scores;
    for (size_t i = 0; i < heads_.size(); ++i)
      scores.push_back(dense(p, heads_[i], read_by_head(x, static_cast<i64>(i)), o));
    return scores.size() == 1 ? scores[0] : scale(add(scores), 1 / static_cast<double>(scores.size()));
  }

  // Models without head save names without the prefix, and a pooler, which image classification does not
  // have.
  std::string canonical_name(const std::string& stored) const override {
    const std::string prefix = family_ + ".";
    std::string name = stored;
    for (const char* start : {"embeddings.", "encoder.", "layernorm.", "pooler."})
      if (stored.starts_with(start)) name = prefix + stored;
    return name.starts_with(prefix + "pooler.") ? "" : name;
  }

 private:
  void read_task(ModelConfig& c) {
    const VitSwitches& s = encoder_.switches();
    const std::string classes = s.classes + "ForImageClassification", none = s.classes + "Model";
    const std::string teacher = classes + "WithTeacher";
    const nlohmann::json names = nlohmann::json::parse(c.json("architectures"));
    const bool absent = names.is_null() || (names.is_array() && names.empty());
    if (absent || names == nlohmann::json{classes}) {
      heads_ = {"classifier"};
    } else if (s.tokens.size() > 1 && names == nlohmann::json{teacher}) {
      heads_ = {"cls_classifier", "distillation_classifier"};
    } else if (names != nlohmann::json{none}) {
      c.fail("architectures", fmt::format("not supported; supported: {}, {}{}", classes, none,
                                          s.tokens.size() > 1 ? ", " + teacher : ""));
    }
    task_ = heads_.empty() ? ModelTask::feature_extraction : ModelTask::image_classification;
  }

  // x [B, tokens + patches, C] -> [B, C], or [B, 2 C] with the mean of the patches.
  Tensor read_by_head(const Tensor& x, i64 i) const {
    const i64 B = x.size(0), C = encoder_.width(), first = encoder_.tokens();
    const Tensor token = reshape(narrow(x, 1, i, 1), {B, C});
    if (!encoder_.switches().mean_of_patches) return token;
    return concat({token, mean(narrow(x, 1, first, x.size(1) - first), {1})}, 1);
  }

  VitEncoder encoder_;
  std::vector<std::string> heads_;
};

}  // namespace

std::unique_ptr<Model> make_vit(ModelConfig& c) { return std::make_unique<Vit>(c, VitSwitches()); }

std::unique_ptr<Model> make_deit(ModelConfig& c) {
  return std::make_unique<Vit>(
      c, VitSwitches{.family = "deit", .classes = "DeiT", .tokens = {"cls_token", "distillation_token"}});
}

std::unique_ptr<Model> make_dinov2(ModelConfig& c) {
  VitSwitches s = {.family = "dinov2", .classes = "Dinov2"};
  s.names.first_norm = "norm1";
  s.names.second_norm = "norm2";
  s.default_patch = 14;
  s.default_eps = 1e-6;
  const bool gated = c.boolean_or("use_swiglu_ffn", false);
  s.names.up = "mlp.fc1";
  s.names.down = gated ? "mlp.weights_out" : "mlp.fc2";
  if (gated) s.names.gate_up = "mlp.weights_in";
  s.branch_scale = c.positive_or("layerscale_value", 1);
  s.mask_token = c.boolean_or("use_mask_token", true);
  s.mean_of_patches = true;
  c.expect("drop_path_rate", {"0", "0.0"});
  // Of a backbone for detection.
  c.inert({"apply_layernorm", "reshape_hidden_states", "out_features", "out_indices", "stage_names"});
  return std::make_unique<Vit>(c, s);
}

}  // namespace redco
