// The Vision Transformer's encoder (Dosovitskiy et al. 2021): an image as a class token and a sequence of
// patches. Alone it classifies images (ViTForImageClassification); vision-encoder-decoder models use its
// output.
#pragma once

#include <string>

#include "models/model.h"
#include "models/patches.h"
#include "models/spec_builder.h"

namespace redco {

class VitEncoder {
 public:
  // Reads the encoder's keys of a config. `prefix` begins the parameters' names ("vit.").
  VitEncoder(ModelConfig& c, std::string prefix);
  void declare(SpecBuilder& b) const;
  // Images [B, channels, height, width] -> [B, 1 + patches, C] after the last norm. ContentsError for images
  // of a size that differs from the config's.
  Tensor run(const ParamTree& p, const Tensor& pixels, const ApplyOptions& o) const;

  i64 width() const { return width_; }
  i64 layers() const { return layers_; }
  const ImageShape& image_shape() const { return patches_.image; }
  i64 positions() const { return 1 + patches_.count(); }
  double init_std() const { return std_; }

 private:
  std::string at(const std::string& rest) const { return prefix_ + rest; }
  std::string layer(i64 i) const;
  Tensor embed(const ParamTree& p, const Tensor& pixels) const;
  Tensor block(const ParamTree& p, const ApplyOptions& o, i64 i, const Tensor& x) const;

  std::string prefix_, activation_;
  i64 width_, layers_, inner_;
  PatchGrid patches_;
  HeadGeometry heads_;
  bool qkv_bias_;
  double dropout_, attention_dropout_, eps_, std_;
};

}  // namespace redco
