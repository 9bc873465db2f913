// Preprocessing: from an image of any size to a model's input, as transformers' ViTImageProcessor with a
// preprocessor_config.json.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "data/images/image.h"

namespace redco {

class ImagePreprocess {
 public:
  // For a model of images [channels, height, width], with preprocessor_config.json of `folder` if it exists
  // ("": none). Without the file, the image must have the model's size, and its pixels are scaled from 0..255
  // to -1..1. `resize` overrides do_resize; the size is the model's if the file has none. ContentsError that
  // names the file for unknown keys and values, and for sizes that differ from the model's.
  ImagePreprocess(const std::string& folder, i64 channels, i64 height, i64 width,
                  std::optional<bool> resize = std::nullopt);

  // Converts channels, resizes, crops the center, rescales, normalizes: [channels, height, width].
  // ContentsError that begins with `where` if the result has another size than the model's.
  std::vector<float> operator()(const Image& image, const std::string& where) const;

  // The inverse of the last two steps: a model's values [channels, height, width] as an image, limited to
  // 0..255. Values that are not numbers are black.
  Image to_image(std::span<const double> values) const;

  // An equivalent preprocessor_config.json, to be saved with a model's weights.
  std::string to_json() const;
  // Differs if the result may differ.
  std::string fingerprint() const { return to_json(); }

 private:
  void read(const std::string& path);

  struct Size {
    i64 height = 0, width = 0, shortest_edge = 0;  // either the first two, or the last
  };
  i64 channels_, height_, width_;
  bool do_resize_ = false, do_center_crop_ = false, do_rescale_ = true, do_normalize_ = true;
  Size size_, crop_;
  Resample resample_ = Resample::bilinear;
  double rescale_factor_ = 1.0 / 255;
  std::vector<double> mean_, std_;  // one per channel
};

}  // namespace redco
