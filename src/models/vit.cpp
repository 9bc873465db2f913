#include "models/vit.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "models/attention_block.h"
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
  return s.gate_up.empty() ? inner : (inner * 2 / 3 + 7) / 8 * 8;
}

}  // namespace

VitEncoder::VitEncoder(ModelConfig& c, std::string prefix, VitSwitches switches)
    : prefix_(std::move(prefix)), switches_(std::move(switches)) {
  width_ = c.integer_or("hidden_size", 768);
  layers_ = c.integer_or("num_hidden_layers", 12, 0);
  inner_ = read_inner(c, switches_, width_);
  const i64 H = c.integer_or("num_attention_heads", 12);
  if (width_ % H != 0)
    c.fail("num_attention_heads", fmt::format("expected a divisor of hidden_size={}", width_));
  heads_ = {H, H, width_ / H};
  patches_ = read_patch_grid(c, switches_.default_patch, switches_.remainder);
  activation_ = c.activation_or("hidden_act", switches_.default_activation);
  dropout_ = c.rate_or("hidden_dropout_prob", 0);
  branch_dropout_ = switches_.branch_scale > 0 ? 0 : dropout_;  // DINOv2 drops embeddings only
  attention_dropout_ = c.rate_or(switches_.attention_dropout, 0);
  qkv_bias_ = c.boolean_or("qkv_bias", true);
  eps_ = c.positive_or("layer_norm_eps", switches_.default_eps);
  std_ = c.number_or("initializer_range", 0.02);
  c.inert({"encoder_stride"});  // of masked image modelling
}

std::string VitEncoder::layer(i64 i) const { return at(fmt::format("{}.{}", switches_.layers, i)); }

void VitEncoder::declare(SpecBuilder& b) const {
  const auto [H, K, D] = heads_;
  const HeadsOf q{0, H, K, D, false}, kv{0, H, K, D, true}, o{1, H, K, D, false};
  for (const std::string& token : switches_.tokens)
    b.add(at("embeddings." + token), switches_.flat ? Shape{width_} : Shape{1, 1, width_}, ParamKind::other,
          {Init::Kind::normal, std_});
  if (switches_.mask_token) b.buffer(at("embeddings.mask_token"), {1, width_}, ParamKind::other);
  b.add(at(switches_.positions), switches_.flat ? Shape{positions(), width_} : Shape{1, positions(), width_},
        ParamKind::embedding, {Init::Kind::normal, std_});
  declare_patches(b, at(switches_.patches), patches_, width_, std_, switches_.patch_bias);
  if (!switches_.input_norm.empty()) b.norm(at(switches_.input_norm), width_, true);
  for (i64 i = 0; i < layers_; ++i) {
    const std::string h = layer(i);
    b.linear(h + "." + switches_.q, width_, width_, qkv_bias_, std_, false, q);
    b.linear(h + "." + switches_.k, width_, width_, qkv_bias_, std_, false, kv);
    b.linear(h + "." + switches_.v, width_, width_, qkv_bias_, std_, false, kv);
    b.linear(h + "." + switches_.out, width_, width_, true, std_, false, o);
    if (switches_.gate_up.empty())
      b.linear(h + "." + switches_.up, inner_, width_, true, std_).role = Role::first;
    else
      b.fused(h + "." + switches_.gate_up,
              {{.name = "gate", .rows = inner_, .role = Role::first},
               {.name = "up", .rows = inner_, .role = Role::first}},
              width_, true, std_, false);
    b.linear(h + "." + switches_.down, width_, inner_, true, std_).role = Role::second;
    b.norm(h + "." + switches_.first_norm, width_, true);
    b.norm(h + "." + switches_.second_norm, width_, true);
    for (int branch = 1; switches_.branch_scale > 0 && branch <= 2; ++branch)
      b.add(fmt::format("{}.layer_scale{}.lambda1", h, branch), {width_}, ParamKind::other,
            {Init::Kind::constant, switches_.branch_scale});
  }
  b.norm(at(switches_.final_norm), width_, true);
  if (!switches_.pooling_head.empty()) declare_pooling_head(b);
}

// torch.nn.MultiheadAttention stores queries, keys and values as one tensor.
void VitEncoder::declare_pooling_head(SpecBuilder& b) const {
  const std::string head = at(switches_.pooling_head) + ".", fused = head + "attention.in_proj";
  const auto [H, K, D] = heads_;
  const HeadsOf q{0, H, K, D, false}, kv{0, H, K, D, true}, o{1, H, K, D, false};
  b.add(head + "probe", {1, 1, width_}, ParamKind::other, {Init::Kind::normal, std_});
  b.fused(fused, {{"q", width_, q}, {"k", width_, kv}, {"v", width_, kv}}, width_, true, std_, false);
  b.rename_stored(fused + ".weight", fused + "_weight");
  b.rename_stored(fused + ".bias", fused + "_bias");
  b.linear(head + "attention.out_proj", width_, width_, true, std_, false, o);
  b.norm(head + "layernorm", width_, true);
  b.linear(head + switches_.up, inner_, width_, true, std_).role = Role::first;
  b.linear(head + switches_.down, width_, inner_, true, std_).role = Role::second;
}

Tensor VitEncoder::embed(const ParamTree& p, const Tensor& pixels) const {
  const Tensor patches = embed_patches(p, at(switches_.patches), patches_, pixels);
  std::vector<Tensor> parts;
  for (const std::string& token : switches_.tokens)
    parts.push_back(broadcast_to(p[at("embeddings." + token)], {pixels.size(0), 1, width_}));
  parts.push_back(patches);
  const Tensor x = concat(parts, 1) + p[at(switches_.positions)];
  return switches_.input_norm.empty() ? x
                                      : layer_norm(p, at(switches_.input_norm), x, eps_, NormResult::stream);
}

Tensor VitEncoder::scaled(const ParamTree& p, const std::string& layer, int branch, const Tensor& y) const {
  if (switches_.branch_scale == 0) return y;
  return y * p[fmt::format("{}.layer_scale{}.lambda1", layer, branch)];
}

Tensor VitEncoder::mlp(const ParamTree& p, const ApplyOptions& o, const std::string& layer,
                       const Tensor& x) const {
  const std::string h = layer + ".";
  if (switches_.gate_up.empty())
    return dense(p, h + switches_.down, activate(activation_, dense(p, h + switches_.up, x, o)), o);
  const LayerName gate(h + switches_.gate_up, "gate"), up(h + switches_.gate_up, "up");
  const Tensors inner = dense_layers(p, {gate, up}, x, o);
  return dense(p, h + switches_.down, activate_gated("silu", inner[0], inner[1]), o);
}

Tensor VitEncoder::block(const ParamTree& p, const ApplyOptions& o, i64 i, const Tensor& x0) const {
  const std::string h = layer(i), l = h + ".";
  Tensor x = x0;
  {
    Scope s("attention");
    const AttentionSettings settings{.scale = 1 / std::sqrt(static_cast<double>(heads_.head_dim)),
                                     .causal = false,
                                     .dropout = attention_dropout_};
    const AttentionBlock attention = {l + switches_.q,   l + switches_.k, l + switches_.v,
                                      l + switches_.out, heads_,          settings};
    const Tensor a0 = layer_norm(p, h + "." + switches_.first_norm, x, eps_);
    const Tensor attended = activation(o, i, ".attention", self_attention(p, attention, o, i, a0, {}));
    const Tensor y = scaled(p, h, 1, residual(o, attended));
    x = x + dropout(o, "attention_out", branch_dropout_, y);
  }
  Scope s("mlp");
  const Tensor m = gather_tokens(o, layer_norm(p, h + "." + switches_.second_norm, x, eps_));
  const Tensor y = scaled(p, h, 2, residual(o, activation(o, i, ".mlp", mlp(p, o, h, m))));
  return x + dropout(o, "mlp_out", branch_dropout_, y);
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
  if (!switches_.norm_pooled) x = layer_norm(p, at(switches_.final_norm), x, eps_);
  return activation(o, "final_norm", gather_tokens(o, x));
}

Tensor VitEncoder::pool(const ParamTree& p, const Tensor& x, const ApplyOptions& o) const {
  Scope s("pooling");
  const i64 B = x.size(0);
  if (switches_.pooling_head.empty()) {
    const Tensor token = reshape(narrow(x, 1, 0, 1), {B, width_});
    return switches_.norm_pooled ? layer_norm(p, at(switches_.final_norm), token, eps_) : token;
  }
  const std::string head = at(switches_.pooling_head) + ".", fused = head + "attention.in_proj";
  const AttentionBlock attention = {
      {fused, "q"}, {fused, "k"},
      {fused, "v"}, head + "attention.out_proj",
      heads_,       {.scale = 1 / std::sqrt(static_cast<double>(heads_.head_dim)), .causal = false}};
  ApplyOptions own = o;
  own.cache = nullptr;
  own.sequence_parallel = false;  // one token
  const Tensor query = broadcast_to(p[head + "probe"], {B, 1, width_});
  const Tensor y = cross_attention(p, attention, own, 0, query, x, {});
  const Tensor z = mlp(p, own, at(switches_.pooling_head), layer_norm(p, head + "layernorm", y, eps_));
  return reshape(y + z, {B, width_});
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
  VitSwitches s = {.family = "dinov2", .classes = "Dinov2", .first_norm = "norm1", .second_norm = "norm2"};
  s.default_patch = 14;
  s.default_eps = 1e-6;
  const bool gated = c.boolean_or("use_swiglu_ffn", false);
  s.up = "mlp.fc1";
  s.down = gated ? "mlp.weights_out" : "mlp.fc2";
  if (gated) s.gate_up = "mlp.weights_in";
  s.branch_scale = c.positive_or("layerscale_value", 1);
  s.mask_token = c.boolean_or("use_mask_token", true);
  s.mean_of_patches = true;
  c.expect("drop_path_rate", {"0", "0.0"});
  // Of a backbone for detection.
  c.inert({"apply_layernorm", "reshape_hidden_states", "out_features", "out_indices", "stage_names"});
  return std::make_unique<Vit>(c, s);
}

}  // namespace redco
