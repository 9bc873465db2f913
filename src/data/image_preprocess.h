// From an image of any size to what a model reads, as transformers' ViTImageProcessor says in a
// preprocessor_config.json.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "data/image.h"

namespace redco {

class ImagePreprocess {
 public:
  // For a model of images [channels, height, width], with preprocessor_config.json of `folder` where there is
  // one ("" : none). Without: the image must have the model's size, and its pixels go from 0..255 to -1..1.
  // `resize` overrides do_resize; to the model's size where the file has none. ContentsError that names
  // the file for keys and values that aren't known, and for sizes that aren't the model's.
  ImagePreprocess(const std::string& folder, i64 channels, i64 height, i64 width,
                  std::optional<bool> resize = std::nullopt);

  // Channels as the model has them, resize, center crop, rescale, normalize: [channels, height, width].
  // ContentsError that begins with `where` for an image of another size than the model's in the end.
  std::vector<float> operator()(const Image& image, const std::string& where) const;

  // preprocessor_config.json that says the same: to be saved beside a model's weights.
  std::string to_json() const;
  // Differs where what comes out may.
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
  std::vector<double> mean_, std_;  // one a channel
};

}  // namespace redco
