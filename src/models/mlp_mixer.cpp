// MLP-Mixer (Tolstikhin et al. 2021): each block has one MLP across the patches of an image and one across
// channels; the mean over the patches classifies the image. Names are timm's. B batch, S patches, C channels.
#include <fmt/format.h>

#include "models/families.h"
#include "models/patches.h"
#include "models/spec_builder.h"
#include "ops/elementwise.h"
#include "ops/reduce.h"
#include "ops/shape.h"

namespace redco {

namespace {

class MlpMixer : public Model {
 public:
  explicit MlpMixer(ModelConfig& c) {
    family_ = "mlp-mixer";
    task_ = ModelTask::image_classification;
    attends_ = false;
    patches_ = read_patch_grid(c);
    image_shape_ = patches_.image;
    width_ = hidden_size_ = c.integer("hidden_size");
    n_layers_ = c.integer("num_hidden_layers", 0);
    const i64 tokens = c.integer("tokens_mlp_dim"), channels = c.integer("channels_mlp_dim");
    activation_ = c.activation_or("hidden_act", "gelu");
    dropout_ = c.rate_or("hidden_dropout_prob", 0);
    eps_ = c.positive_or("layer_norm_eps", 1e-6);
    const double std = c.number_or("initializer_range", 0.02);
    c.expect("architectures", {"[\"MlpMixerForImageClassification\"]", "[]"});
    problem_type_ = c.text_or("problem_type", "");
    num_labels_ = c.labels();
    c.finish();

    SpecBuilder b(params_);
    declare_patches(b, "stem.proj", patches_, width_, std);
    for (i64 i = 0; i < n_layers_; ++i) {
      const std::string h = block_name(i);
      b.norm(h + ".norm1", width_, true);
      b.linear(h + ".mlp_tokens.fc1", tokens, patches_.count(), true, std).role = Role::first;
      b.linear(h + ".mlp_tokens.fc2", patches_.count(), tokens, true, std).role = Role::second;
      b.norm(h + ".norm2", width_, true);
      b.linear(h + ".mlp_channels.fc1", channels, width_, true, std).role = Role::first;
      b.linear(h + ".mlp_channels.fc2", width_, channels, true, std).role = Role::second;
    }
    b.norm("norm", width_, true);
    b.linear("head", num_labels_, width_, true, std);
    config_json_ = c.dump();
  }

  Tensor encode_outputs(const ParamTree& p, const EncoderInputs& in, const ApplyOptions& o) const override {
    Tensor x;
    {
      Scope s("embedding");
      x = embed_patches(p, "stem.proj", patches_, in.pixel_values);
    }
    for (i64 i = 0; i < n_layers_; ++i) {
      if (o.hidden_states) o.hidden_states->push_back(x);
      x = run_block(p, o, block_name(i), x,
                    [this, o, i](const ParamTree& own, const Tensor& h) { return block(own, o, i, h); });
    }
    x = layer_norm(p, "norm", x, eps_);
    if (o.hidden_states) o.hidden_states->push_back(x);
    if (!o.head) return x;
    Scope s("classifier");
    return dense(p, "head", mean(x, {1}), o);
  }

 private:
  static std::string block_name(i64 i) { return fmt::format("blocks.{}", i); }

  Tensor mlp(const ParamTree& p, const ApplyOptions& o, const std::string& name, const Tensor& x) const {
    return dense(p, name + ".fc2", activate(activation_, dense(p, name + ".fc1", x, o)), o);
  }

  Tensor block(const ParamTree& p, const ApplyOptions& o, i64 i, const Tensor& x0) const {
    const std::string h = block_name(i);
    Tensor x = x0;
    {
      Scope s("mix_tokens");
      const Tensor across = transpose(layer_norm(p, h + ".norm1", x, eps_), 1, 2);  // [B, C, S]
      x = x + dropout(o, "tokens_out", dropout_, transpose(mlp(p, o, h + ".mlp_tokens", across), 1, 2));
    }
    Scope s("mix_channels");
    const Tensor m = mlp(p, o, h + ".mlp_channels", layer_norm(p, h + ".norm2", x, eps_));
    return x + dropout(o, "channels_out", dropout_, m);
  }

  PatchGrid patches_;
  std::string activation_;
  i64 width_;
  double dropout_, eps_;
};

}  // namespace

std::unique_ptr<Model> make_mlp_mixer(ModelConfig& c) { return std::make_unique<MlpMixer>(c); }

}  // namespace redco
