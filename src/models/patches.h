// An image as a sequence of patches, the input layer of ViT and MLP-Mixer. B batch, S patches, C channels.
#pragma once

#include <string>

#include "models/config.h"
#include "models/model.h"
#include "models/spec_builder.h"

namespace redco {

struct PatchGrid {
  ImageShape image;
  i64 patch_height = 0, patch_width = 0;

  i64 rows() const { return image.height / patch_height; }
  i64 columns() const { return image.width / patch_width; }
  i64 count() const { return rows() * columns(); }
};

// Reads and checks num_channels (3), image_size (224) and patch_size (default_patch): a number, or [height,
// width]. remainder: pixels on the right and at the bottom that fill no patch may be left, and are not used.
PatchGrid read_patch_grid(ModelConfig& c, i64 default_patch = 16, bool remainder = false);

// The projection of patches, stored as a convolution.
void declare_patches(SpecBuilder& b, const std::string& name, const PatchGrid& g, i64 width, double std,
                     bool bias = true);
// Images [B, channels, height, width] -> [B, S, C]. ContentsError for images of another size.
Tensor embed_patches(const ParamTree& p, const std::string& name, const PatchGrid& g, const Tensor& pixels);

}  // namespace redco
