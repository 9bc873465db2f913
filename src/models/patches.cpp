#include "models/patches.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "ops/linear.h"
#include "ops/shape.h"

namespace redco {

namespace {

// A size in pixels: one number, or [height, width].
std::pair<i64, i64> read_size(ModelConfig& c, const char* key, i64 fallback) {
  const auto v = nlohmann::json::parse(c.json(key));
  if (!v.is_array()) {
    const i64 n = c.integer_or(key, fallback);
    return {n, n};
  }
  const auto good = [](const nlohmann::json& n) {
    return n.is_number_integer() && n.get<i64>() >= 1 && n.get<i64>() <= (1 << 20);
  };
  if (v.size() != 2 || !good(v[0]) || !good(v[1]))
    c.fail(key, "expected a number of pixels, or [height, width]");
  return {v[0].get<i64>(), v[1].get<i64>()};
}

}  // namespace

PatchGrid read_patch_grid(ModelConfig& c, i64 default_patch, bool remainder) {
  PatchGrid g;
  g.image.channels = c.integer_or("num_channels", 3);
  std::tie(g.image.height, g.image.width) = read_size(c, "image_size", 224);
  std::tie(g.patch_height, g.patch_width) = read_size(c, "patch_size", default_patch);
  const bool divides = g.image.height % g.patch_height == 0 && g.image.width % g.patch_width == 0;
  if (remainder ? g.count() == 0 : !divides)
    c.fail("patch_size", fmt::format("an image of {} x {} pixels is not divisible into patches",
                                     g.image.height, g.image.width));
  return g;
}

void declare_patches(SpecBuilder& b, const std::string& name, const PatchGrid& g, i64 width, double std,
                     bool bias) {
  b.add(name + ".weight", {width, g.image.channels, g.patch_height, g.patch_width}, ParamKind::conv,
        {Init::Kind::normal, std});
  if (bias) b.add(name + ".bias", {width}, ParamKind::bias, {Init::Kind::zeros, 0});
}

// Patches do not overlap, so the convolution is a linear layer on the pixels of each patch.
Tensor embed_patches(const ParamTree& p, const std::string& name, const PatchGrid& g, const Tensor& pixels) {
  const auto& [channels, height, width] = g.image;
  if (pixels.visible() != 4 || pixels.size(1) != channels || pixels.size(2) != height ||
      pixels.size(3) != width)
    throw ContentsError("[model] images of shape {}; the model expects ({}, {}, {})",
                        to_string(pixels.shape()), channels, height, width);
  const i64 B = pixels.size(0), size = channels * g.patch_height * g.patch_width;
  Tensor used = pixels;
  if (const i64 h = g.rows() * g.patch_height; h < height) used = narrow(used, 2, 0, h);
  if (const i64 w = g.columns() * g.patch_width; w < width) used = narrow(used, 3, 0, w);
  // [B, rows, columns, channels, patch height, patch width]
  const Tensor cut = permute(
      reshape(used, {B, channels, g.rows(), g.patch_height, g.columns(), g.patch_width}), {0, 2, 4, 1, 3, 5});
  const Tensor& w = p[name + ".weight"];
  return linear(reshape(cut, {B, g.count(), size}), reshape(w, {w.size(0), size}), p.find(name + ".bias"));
}

}  // namespace redco
