// The image encoder: ViT (Dosovitskiy et al. 2021), DeiT (Touvron et al. 2021: a second token, which learned
// from a teacher), DINOv2 (Oquab et al. 2023: scaled branches, gated MLPs in the largest model), and the
// image towers of CLIP (Radford et al. 2021: a norm before the first layer) and SigLIP (Zhai et al. 2023: no
// token, the patches are pooled by attention). An image is a sequence of tokens and patches. Alone it
// classifies images; vision-encoder-decoder models use its output, and dual encoders its pooled output.
#pragma once

#include <string>
#include <vector>

#include "models/model.h"
#include "models/patches.h"
#include "models/spec_builder.h"

namespace redco {

// The differences of the families, and names of parameters within a layer.
struct VitSwitches {
  std::string family = "vit", classes = "ViT";      // `classes` begins the names of transformers' classes
  std::vector<std::string> tokens = {"cls_token"};  // in front of the patches
  // Names without prefix, of layers also without `.weight` and `.bias`.
  std::string patches = "embeddings.patch_embeddings.projection",
              positions = "embeddings.position_embeddings", layers = "encoder.layer",
              final_norm = "layernorm";
  std::string q = "attention.attention.query", k = "attention.attention.key", v = "attention.attention.value",
              out = "attention.output.dense";
  std::string first_norm = "layernorm_before", second_norm = "layernorm_after";
  std::string up = "intermediate.dense", down = "output.dense";
  i64 default_patch = 16;  // of a config without patch_size
  double default_eps = 1e-12;
  std::string gate_up{};         // of a gated MLP, as one tensor: the rows of gate, then those of up
  double branch_scale = 0;       // > 0: branches are scaled by a vector that begins with this number
  bool mask_token = false;       // of pre-training: stored, and not used
  bool mean_of_patches = false;  // the classifier also reads the mean of all patches
  std::string input_norm{};      // of tokens and patches, before the first layer
  bool patch_bias = true;
  bool remainder = false;  // see read_patch_grid()
  bool flat = false;       // tokens are [C] and positions a table [P, C]; else [1, 1, C] and [1, P, C]
  std::string default_activation = "gelu", attention_dropout = "attention_probs_dropout_prob";
  // pool(). norm_pooled: run() omits the final norm, which pool() applies to the first token.
  bool norm_pooled = false;
  std::string pooling_head{};  // attention of a trained query to all patches, then an MLP
};

class VitEncoder {
 public:
  // Reads the encoder's keys of a config. `prefix` begins the parameters' names ("vit.").
  VitEncoder(ModelConfig& c, std::string prefix, VitSwitches switches = {});
  void declare(SpecBuilder& b) const;
  // Images [B, channels, height, width] -> [B, tokens + patches, C] after the last norm. ContentsError for
  // images of a size that differs from the config's.
  Tensor run(const ParamTree& p, const Tensor& pixels, const ApplyOptions& o) const;
  // The result of run() -> [B, C]: the first token, or the pooling head's.
  Tensor pool(const ParamTree& p, const Tensor& x, const ApplyOptions& o) const;

  i64 width() const { return width_; }
  i64 layers() const { return layers_; }
  const ImageShape& image_shape() const { return patches_.image; }
  const VitSwitches& switches() const { return switches_; }
  i64 tokens() const { return static_cast<i64>(switches_.tokens.size()); }
  i64 positions() const { return tokens() + patches_.count(); }
  double init_std() const { return std_; }

 private:
  std::string at(const std::string& rest) const { return prefix_ + rest; }
  std::string layer(i64 i) const;
  void declare_pooling_head(SpecBuilder& b) const;
  Tensor embed(const ParamTree& p, const Tensor& pixels) const;
  Tensor block(const ParamTree& p, const ApplyOptions& o, i64 i, const Tensor& x) const;
  Tensor mlp(const ParamTree& p, const ApplyOptions& o, const std::string& layer, const Tensor& x) const;
  // The result y of a layer's first or second branch, scaled.
  Tensor scaled(const ParamTree& p, const std::string& layer, int branch, const Tensor& y) const;

  std::string prefix_, activation_;
  VitSwitches switches_;
  i64 width_, layers_, inner_;
  PatchGrid patches_;
  HeadGeometry heads_;
  bool qkv_bias_;
  double dropout_, branch_dropout_, attention_dropout_, eps_, std_;
};

}  // namespace redco
