// The small convolutional network of RedCoast's MAML example: convolutions, each with an activation and
// pooling, then linear layers. transformers has no such model. Parameters have the names and layouts of
// torch.nn.Conv2d and Linear (conv1, conv2, fc1, fc2); docs/maml.md describes the config.
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "models/families.h"
#include "models/spec_builder.h"
#include "ops/conv.h"
#include "ops/shape.h"

namespace redco {

namespace {

using Json = nlohmann::ordered_json;

bool is_size(const Json& n) { return n.is_number_integer() && n >= 1 && n <= (1 << 20); }

// [height, width], or one number for both.
std::array<i64, 2> read_sizes(ModelConfig& c, const char* key, i64 fallback) {
  const Json v = Json::parse(c.json(key));
  if (v.is_null()) return {fallback, fallback};
  if (is_size(v)) return {v.get<i64>(), v.get<i64>()};
  if (!v.is_array() || v.size() != 2 || !is_size(v[0]) || !is_size(v[1]))
    c.fail(key, "expected a number of pixels, or [height, width]");
  return {v[0].get<i64>(), v[1].get<i64>()};
}

// One number per layer.
std::vector<i64> read_widths(ModelConfig& c, const char* key, std::vector<i64> fallback) {
  const Json v = Json::parse(c.json(key));
  if (v.is_null()) return fallback;
  if (!v.is_array() || v.size() > 64 || !std::all_of(v.begin(), v.end(), is_size))
    c.fail(key, "expected a list of widths, one per layer");
  return v.get<std::vector<i64>>();
}

class Cnn : public Model {
 public:
  explicit Cnn(ModelConfig& c) {
    family_ = "cnn";
    task_ = ModelTask::image_classification;
    attends_ = false;
    c.expect("architectures", {"[\"CnnForImageClassification\"]", "[]"});
    const auto image = read_sizes(c, "image_size", 28);
    image_shape_ = {c.integer_or("num_channels", 1), image[0], image[1]};
    conv_ = read_widths(c, "conv_channels", {32, 64});
    hidden_ = read_widths(c, "hidden_sizes", {256});
    kernel_ = c.integer_or("kernel_size", 3);
    if (kernel_ % 2 == 0 || kernel_ > 31)
      c.fail("kernel_size", "expected an odd number up to 31, so that convolutions keep the image size");
    activation_ = c.activation_or("hidden_act", "relu");
    pooling_ = c.text_or("pooling", "avg");
    if (pooling_ != "avg" && pooling_ != "max" && pooling_ != "none")
      c.fail("pooling", "expected avg, max or none");
    num_labels_ = c.labels();
    problem_type_ = c.text_or("problem_type", "");
    c.finish();

    SpecBuilder b(params_);
    auto [channels, height, width] = image_shape_;
    for (size_t i = 0; i < conv_.size(); ++i) {
      b.add(conv(i) + ".weight", {conv_[i], channels, kernel_, kernel_}, ParamKind::conv,
            lecun(channels * kernel_ * kernel_));
      b.add(conv(i) + ".bias", {conv_[i]}, ParamKind::bias, {Init::Kind::zeros, 0});
      channels = conv_[i];
      if (pooling_ == "none") continue;
      height /= 2;
      width /= 2;
      if (height == 0 || width == 0)
        c.fail("conv_channels",
               fmt::format("images of {} x {} pixels have no pixel left after layer {}'s pooling", image[0],
                           image[1], i + 1));
    }
    i64 in = channels * height * width;
    for (size_t i = 0; i <= hidden_.size(); ++i) {
      const i64 out = i < hidden_.size() ? hidden_[i] : num_labels_;
      b.linear(fc(i), out, in, true, lecun(in).std);
      in = out;
    }
    n_layers_ = static_cast<i64>(conv_.size() + hidden_.size()) + 1;
    config_json_ = c.dump();
  }

  Tensor encode_outputs(const ParamTree& p, const EncoderInputs& in, const ApplyOptions& o) const override {
    const Tensor& pixels = in.pixel_values;
    const auto& [channels, height, width] = image_shape_;
    if (pixels.visible() != 4 || pixels.size(1) != channels || pixels.size(2) != height ||
        pixels.size(3) != width)
      throw ContentsError("[model] images of shape {}; the model expects ({}, {}, {})",
                          to_string(pixels.shape()), channels, height, width);
    Tensor x = pixels;
    for (size_t i = 0; i < conv_.size(); ++i) {
      Scope s("conv");
      x = conv2d(x, p[conv(i) + ".weight"], p[conv(i) + ".bias"], {.padding = {kernel_ / 2, kernel_ / 2}});
      const bool one_pass = activation_ == "relu" && pooling_ == "avg";
      x = one_pass ? relu_avg_pool2d(x) : activate(activation_, x);
      if (pooling_ == "avg" && !one_pass) x = avg_pool2d(x);
      if (pooling_ == "max") x = max_pool2d(x);
    }
    x = reshape(x, {x.size(0), x.size(1) * x.size(2) * x.size(3)});
    for (size_t i = 0; i <= hidden_.size(); ++i) {
      Scope s("mlp");
      x = dense(p, fc(i), x, o);
      if (i < hidden_.size()) x = activate(activation_, x);
    }
    return x;
  }

 private:
  static std::string conv(size_t i) { return fmt::format("conv{}", i + 1); }
  static std::string fc(size_t i) { return fmt::format("fc{}", i + 1); }
  // flax's default initialization: LeCun normal, variance 1 / inputs.
  static Init lecun(i64 inputs) { return {Init::Kind::normal, 1 / std::sqrt(static_cast<double>(inputs))}; }

  std::vector<i64> conv_, hidden_;
  i64 kernel_;
  std::string activation_, pooling_;
};

}  // namespace

std::unique_ptr<Model> make_cnn(ModelConfig& c) { return std::make_unique<Cnn>(c); }

}  // namespace redco
