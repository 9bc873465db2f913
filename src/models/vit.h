// The image encoder: ViT (Dosovitskiy et al. 2021), DeiT (Touvron et al. 2021: a second token, which learned
// from a teacher), DINOv2 (Oquab et al. 2023: scaled branches, gated MLPs in the largest model), and the
// image towers of CLIP and SigLIP (two_towers.cpp). An image is a sequence of patches, after a class token in
// most families. Alone it classifies images; vision-encoder-decoder models use its output.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "models/model.h"
#include "models/patches.h"
#include "models/pre_norm_stack.h"
#include "models/spec_builder.h"

namespace redco {

// The differences of the families.
struct VitSwitches {
  std::string family = "vit", classes = "ViT";      // `classes` begins the names of transformers' classes
  std::vector<std::string> tokens = {"cls_token"};  // in front of the patches
  PreNormNames names{};                             // of the layers
  std::string patches = "patch_embeddings.projection", positions = "position_embeddings";
  // Tokens are vectors and positions a table, as in the towers of CLIP; else both have a dim for the batch.
  bool plain_tables = false;
  bool patch_bias = true;
  std::string first_norm{}, last_norm = "layernorm";  // of the embeddings ("": none), and after the layers
  bool norm_of_output = true;  // the last norm is the end of run(); else of what a tower pools
  i64 default_patch = 16;      // of a config without patch_size
  double default_eps = 1e-12;
  std::string default_activation = "gelu";
  std::string attention_dropout = "attention_probs_dropout_prob";  // the config's key
  double branch_scale = 0;       // > 0: branches are scaled by a vector that begins with this number
  bool mask_token = false;       // of pre-training: stored, and not used
  bool mean_of_patches = false;  // the classifier also reads the mean of all patches
  // Standard deviations of the layers' initial weights; nullopt: the config's initializer_range.
  std::optional<PreNormStds> std{};
};

class VitEncoder {
 public:
  // Reads the encoder's keys of a config. `prefix` begins the parameters' names ("vit.").
  VitEncoder(ModelConfig& c, std::string prefix, VitSwitches switches = {});
  void declare(SpecBuilder& b) const;
  // Images [B, channels, height, width] -> [B, tokens + patches, C]. ContentsError for images of a size that
  // differs from the config's.
  Tensor run(const ParamTree& p, const Tensor& pixels, const ApplyOptions& o) const;
  Tensor last_norm(const ParamTree& p, const Tensor& x) const;

  i64 width() const { return stack_.settings().width; }
  i64 layers() const { return stack_.settings().layers; }
  const PreNormSettings& settings() const { return stack_.settings(); }
  const ImageShape& image_shape() const { return patches_.image; }
  const VitSwitches& switches() const { return switches_; }
  i64 tokens() const { return static_cast<i64>(switches_.tokens.size()); }
  i64 positions() const { return tokens() + patches_.count(); }
  double init_std() const { return std_; }

 private:
  std::string at(const std::string& rest) const { return prefix_ + rest; }
  Tensor embed(const ParamTree& p, const Tensor& pixels) const;

  std::string prefix_;
  VitSwitches switches_;
  double std_, dropout_;
  PatchGrid patches_;
  PreNormStack stack_;
};

}  // namespace redco
