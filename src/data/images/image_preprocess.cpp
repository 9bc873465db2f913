#include "data/images/image_preprocess.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/file.h"
#include "base/words.h"

namespace redco {

using Json = nlohmann::ordered_json;

namespace {

constexpr const char* kFile = "preprocessor_config.json";
constexpr i64 kMaxEdge = 1 << 15;

// The file's keys; each is looked up once.
class Keys {
 public:
  Keys(const Json& j, std::string path) : j_(j), path_(std::move(path)) {}

  [[noreturn]] void fail(const std::string& key, const std::string& expected) const {
    const auto it = j_.find(key);
    throw ContentsError(
        "[model] {}: {}={}: expected {}", path_, key,
        it == j_.end() ? "" : excerpt(it->dump(-1, ' ', false, Json::error_handler_t::replace)), expected);
  }
  // Null if the key is absent or null.
  const Json* find(const std::string& key) {
    asked_.insert(key);
    const auto it = j_.find(key);
    return it == j_.end() || it->is_null() ? nullptr : &*it;
  }
  void boolean(const std::string& key, bool& to) {
    if (const Json* v = find(key)) {
      if (!v->is_boolean()) fail(key, "true or false");
      to = v->get<bool>();
    }
  }
  void number(const std::string& key, double& to) {
    if (const Json* v = find(key)) {
      if (!v->is_number() || !std::isfinite(v->get<double>())) fail(key, "a number");
      to = v->get<double>();
    }
  }
  // One number per channel, or one for all.
  void numbers(const std::string& key, i64 channels, std::vector<double>& to) {
    const Json* v = find(key);
    if (!v) return;
    std::vector<double> out;
    for (const Json& x : v->is_array() ? *v : Json::array({*v})) {
      if (!x.is_number() || !std::isfinite(x.get<double>())) fail(key, "numbers");
      out.push_back(x.get<double>());
    }
    if (out.size() == 1) out.assign(static_cast<size_t>(channels), out[0]);
    if (static_cast<i64>(out.size()) != channels)
      fail(key, fmt::format("a number for each of the model's {} channels", channels));
    to = std::move(out);
  }
  // A length in pixels under a key of an object; 0: absent.
  i64 edge(const std::string& key, const Json& object, const char* name) const {
    const auto it = object.find(name);
    if (it == object.end() || it->is_null()) return 0;
    if (!it->is_number_integer() || it->get<double>() < 1 || it->get<double>() > kMaxEdge)
      fail(key, fmt::format("lengths of 1 to {} pixels", kMaxEdge));
    return it->get<i64>();
  }
  void finish() const {
    // Keys without an effect here: the file's origin, and settings of other processors.
    static const std::set<std::string> inert = {
        "image_processor_type", "feature_extractor_type", "processor_class", "do_convert_rgb",
        "data_format",          "input_data_format",      "device",          "return_tensors",
        "disable_grouping",     "_valid_processor_keys",  "auto_map"};
    for (const auto& [key, value] : j_.items())
      if (!asked_.count(key) && !inert.count(key) && !value.is_null() && value != Json(false))
        fail(key, "no such key; redco does not support it");
  }

 private:
  const Json& j_;
  std::string path_;
  std::set<std::string> asked_;
};

}  // namespace

ImagePreprocess::ImagePreprocess(const std::string& folder, i64 channels, i64 height, i64 width,
                                 std::optional<bool> resize)
    : channels_(channels), height_(height), width_(width) {
  REDCO_CHECK(channels >= 1 && height >= 1 && width >= 1);
  if (channels != 1 && channels != 3)
    throw UsageError("[model] the model reads images of {} channels; images have 1 (grey) or 3 (colours)",
                     channels);
  if (std::max(height, width) > kMaxEdge)
    throw UsageError("[model] the model reads images of {} x {} pixels; expected at most {} a side", height,
                     width, kMaxEdge);
  size_ = crop_ = {height, width, 0};
  mean_.assign(static_cast<size_t>(channels), 0.5);
  std_ = mean_;
  if (const std::string path = join_path(folder, kFile); !folder.empty() && exists(path)) read(path);
  if (resize) {
    if (*resize && !do_resize_ && !do_center_crop_) size_ = {height, width, 0};
    do_resize_ = *resize;
  }
}

void ImagePreprocess::read(const std::string& path) {
  const Json j = Json::parse(read_file(path, 1 << 20), nullptr, false);
  if (!j.is_object()) throw ContentsError("[model] {}: not a JSON object of settings", path);
  Keys k(j, path);
  do_resize_ = true;  // ViTImageProcessor's default
  k.boolean("do_resize", do_resize_);
  k.boolean("do_center_crop", do_center_crop_);
  k.boolean("do_rescale", do_rescale_);
  k.boolean("do_normalize", do_normalize_);
  k.number("rescale_factor", rescale_factor_);
  k.numbers("image_mean", channels_, mean_);
  k.numbers("image_std", channels_, std_);
  for (const double s : std_)
    if (s == 0) k.fail("image_std", "numbers other than 0");
  if (const Json* v = k.find("resample")) {
    if (!v->is_number_integer() || *v < 0 || *v > 5) k.fail("resample", "0 to 5, as Pillow numbers them");
    resample_ = static_cast<Resample>(v->get<int>());
  }
  bool square_default = true;  // whether a size of one number is a square
  k.boolean("default_to_square", square_default);
  const auto size = [&](const std::string& key, bool crop, Size& to) {
    const Json* v = k.find(key);
    if (!v) return;
    const Json one =
        crop || square_default ? Json{{"height", *v}, {"width", *v}} : Json{{"shortest_edge", *v}};
    const Json square = v->is_number() ? one : *v;
    if (!square.is_object()) k.fail(key, "a length, {height, width} or {shortest_edge}");
    for (const auto& [name, value] : square.items())
      if (name != "height" && name != "width" && (crop || name != "shortest_edge") && !value.is_null())
        k.fail(key, crop ? "height and width" : "height and width, or shortest_edge");
    to = {k.edge(key, square, "height"), k.edge(key, square, "width"), k.edge(key, square, "shortest_edge")};
    if (to.shortest_edge ? to.height || to.width : !to.height || !to.width)
      k.fail(key, crop ? "height and width" : "height and width, or shortest_edge");
  };
  size("size", false, size_);
  size("crop_size", true, crop_);
  k.finish();

  // The result has one fixed size, which must be the model's.
  const Size* last = do_center_crop_ ? &crop_ : do_resize_ && !size_.shortest_edge ? &size_ : nullptr;
  if (last && (last->height != height_ || last->width != width_))
    k.fail(do_center_crop_ ? "crop_size" : "size",
           fmt::format("the {} x {} pixels that the model reads", height_, width_));
}

std::vector<float> ImagePreprocess::operator()(const Image& image, const std::string& where) const {
  Image x = to_channels(image, channels_);
  if (do_resize_) {
    i64 height = size_.height, width = size_.width;
    if (const i64 edge = size_.shortest_edge) {
      const i64 shorter = std::min(x.height, x.width), longer = std::max(x.height, x.width);
      const double other = static_cast<double>(edge * longer) / static_cast<double>(shorter);
      if (other * static_cast<double>(edge) > static_cast<double>(kMaxPixels))
        throw ContentsError("{}: {} x {} pixels, too long to resize the shorter edge to {}", where, x.height,
                            x.width, edge);
      const i64 rounded = static_cast<i64>(other);
      height = x.height <= x.width ? edge : rounded;
      width = x.height <= x.width ? rounded : edge;
    }
    if (height != x.height || width != x.width) x = resize_image(x, height, width, resample_);
  }
  if (do_center_crop_) x = center_crop(x, crop_.height, crop_.width);
  if (x.height != height_ || x.width != width_)
    throw ContentsError(
        "{}: the image is {} pixels wide and {} high; expected {} wide and {} high. data.resize_images=true "
        "resizes images",
        where, x.width, x.height, width_, height_);
  // A lookup table per channel: a pixel has 256 values.
  std::vector<float> out(x.pixels.size());
  const i64 n = x.height * x.width;
  for (i64 c = 0; c < channels_; ++c) {
    float table[256];
    for (int v = 0; v < 256; ++v) {
      float f = static_cast<float>(do_rescale_ ? v * rescale_factor_ : v);
      if (do_normalize_)
        f = (f - static_cast<float>(mean_[static_cast<size_t>(c)])) /
            static_cast<float>(std_[static_cast<size_t>(c)]);
      table[v] = f;
    }
    for (i64 i = 0; i < n; ++i) out[c * n + i] = table[x.pixels[i * channels_ + c]];
  }
  return out;
}

Image ImagePreprocess::to_image(std::span<const double> values) const {
  const i64 n = height_ * width_;
  REDCO_CHECK(static_cast<i64>(values.size()) == channels_ * n, "{} values for an image of {} x {} x {}",
              values.size(), channels_, height_, width_);
  Image image{height_, width_, channels_, std::vector<std::uint8_t>(values.size())};
  for (i64 c = 0; c < channels_; ++c)
    for (i64 i = 0; i < n; ++i) {
      double v = values[static_cast<size_t>(c * n + i)];
      if (do_normalize_) v = v * std_[static_cast<size_t>(c)] + mean_[static_cast<size_t>(c)];
      if (do_rescale_) v /= rescale_factor_;
      image.pixels[static_cast<size_t>(i * channels_ + c)] =
          std::isnan(v) ? 0 : static_cast<std::uint8_t>(std::lround(std::clamp(v, 0.0, 255.0)));
    }
  return image;
}

std::string ImagePreprocess::to_json() const {
  const auto size = [](const Size& s) {
    return s.shortest_edge ? Json{{"shortest_edge", s.shortest_edge}}
                           : Json{{"height", s.height}, {"width", s.width}};
  };
  Json j = {{"image_processor_type", "ViTImageProcessor"},
            {"do_convert_rgb", channels_ == 3},
            {"do_resize", do_resize_},
            {"size", size(size_)},
            {"resample", static_cast<int>(resample_)},
            {"do_center_crop", do_center_crop_}};
  if (do_center_crop_) j["crop_size"] = size(crop_);
  j["do_rescale"] = do_rescale_;
  j["rescale_factor"] = rescale_factor_;
  j["do_normalize"] = do_normalize_;
  j["image_mean"] = mean_;
  j["image_std"] = std_;
  return j.dump(2) + "\n";
}

}  // namespace redco
