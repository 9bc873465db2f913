// Resizing, equal to Pillow (Resample.c, Geometry.c of Pillow 4 and later).
#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/error.h"
#include "data/images/image.h"

namespace redco {

namespace {

struct Filter {
  double (*weight)(double x);
  double support;  // the filter is zero beyond, before downscaling
};

double sinc(double x) {
  if (x == 0) return 1;
  x *= std::numbers::pi;
  return std::sin(x) / x;
}

Filter filter_of(Resample how) {
  switch (how) {
    case Resample::box:
      return {[](double x) { return x > -0.5 && x <= 0.5 ? 1.0 : 0.0; }, 0.5};
    case Resample::bilinear:
      return {[](double x) { return std::max(0.0, 1 - std::abs(x)); }, 1};
    case Resample::hamming:
      return {[](double x) {
                x = std::abs(x);
                if (x == 0) return 1.0;
                if (x >= 1) return 0.0;
                x *= std::numbers::pi;
                return std::sin(x) / x * (0.54 + 0.46 * std::cos(x));
              },
              1};
    case Resample::bicubic:
      return {[](double x) {
                constexpr double a = -0.5;
                x = std::abs(x);
                if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
                if (x < 2) return (((x - 5) * x + 8) * x - 4) * a;
                return 0.0;
              },
              2};
    default:  // lanczos
      return {[](double x) { return -3 <= x && x < 3 ? sinc(x) * sinc(x / 3) : 0.0; }, 3};
  }
}

// Weights are integers with 22 fractional bits: 8 bits of a pixel and 2 of headroom fill 32.
constexpr int kBits = 32 - 8 - 2;

// For each of `out` positions along an axis of `in` pixels: its first pixel, and the weights.
struct Weights {
  i64 most = 0;  // capacity of weights per position
  std::vector<i64> begin, count;
  std::vector<i32> weight;  // [out][most]
};

Weights weights_of(i64 in, i64 out, const Filter& f) {
  const double scale = static_cast<double>(in) / static_cast<double>(out), wide = std::max(scale, 1.0);
  const double support = f.support * wide, narrow = 1 / wide;
  Weights w;
  w.most = static_cast<i64>(std::ceil(support)) * 2 + 1;
  w.weight.assign(static_cast<size_t>(out * w.most), 0);
  std::vector<double> k(static_cast<size_t>(w.most));
  for (i64 i = 0; i < out; ++i) {
    const double center = (static_cast<double>(i) + 0.5) * scale;
    const i64 begin = std::max(static_cast<i64>(center - support + 0.5), i64{0});
    const i64 count = std::min(static_cast<i64>(center + support + 0.5), in) - begin;
    double sum = 0;
    for (i64 x = 0; x < count; ++x)
      sum += k[x] = f.weight((static_cast<double>(x + begin) - center + 0.5) * narrow);
    for (i64 x = 0; x < count; ++x) {
      const double share = (sum != 0 ? k[x] / sum : k[x]) * (1 << kBits);
      w.weight[i * w.most + x] = static_cast<i32>(share < 0 ? share - 0.5 : share + 0.5);
    }
    w.begin.push_back(begin);
    w.count.push_back(count);
  }
  return w;
}

// [outer][in][inner] -> [outer][out][inner] along the middle axis.
std::vector<std::uint8_t> along(const std::vector<std::uint8_t>& from, i64 outer, i64 in, i64 out, i64 inner,
                                const Filter& f) {
  const Weights w = weights_of(in, out, f);
  std::vector<std::uint8_t> to(static_cast<size_t>(outer * out * inner));
  for (i64 o = 0; o < outer; ++o)
    for (i64 i = 0; i < out; ++i) {
      const std::uint8_t* source = from.data() + (o * in + w.begin[i]) * inner;
      const i32* k = w.weight.data() + i * w.most;
      for (i64 c = 0; c < inner; ++c) {
        i32 sum = 1 << (kBits - 1);
        for (i64 x = 0; x < w.count[i]; ++x) sum += source[x * inner + c] * k[x];
        to[(o * out + i) * inner + c] = static_cast<std::uint8_t>(std::clamp(sum >> kBits, 0, 255));
      }
    }
  return to;
}

Image nearest(const Image& image, i64 height, i64 width) {
  Image out{height, width, image.channels, {}};
  out.pixels.resize(static_cast<size_t>(height * width * image.channels));
  // Positions are accumulated step by step as in Pillow, because the results must have the same rounding.
  const auto places = [](i64 in, i64 n) {
    const double step = static_cast<double>(in) / static_cast<double>(n);
    std::vector<i64> at;
    double x = step * 0.5;
    for (i64 i = 0; i < n; ++i, x += step) at.push_back(std::min(static_cast<i64>(x), in - 1));
    return at;
  };
  const std::vector<i64> rows = places(image.height, height), columns = places(image.width, width);
  std::uint8_t* to = out.pixels.data();
  for (const i64 r : rows)
    for (const i64 c : columns)
      to = std::copy_n(image.pixels.data() + (r * image.width + c) * image.channels, image.channels, to);
  return out;
}

}  // namespace

Image resize_image(const Image& image, i64 height, i64 width, Resample how) {
  REDCO_CHECK(height >= 1 && width >= 1 && height <= kMaxPixels / width, "resize to {} x {}", height, width);
  if (how == Resample::nearest) return nearest(image, height, width);
  const Filter f = filter_of(how);
  Image out = image;
  if (width != image.width) {
    out.pixels = along(out.pixels, image.height, image.width, width, image.channels, f);
    out.width = width;
  }
  if (height != image.height) {
    out.pixels = along(out.pixels, 1, image.height, height, width * image.channels, f);
    out.height = height;
  }
  return out;
}

Image center_crop(const Image& image, i64 height, i64 width) {
  Image out{height, width, image.channels, {}};
  out.pixels.assign(static_cast<size_t>(height * width * image.channels), 0);
  // With an odd difference, the image is half a pixel further up and left; a crop begins there too.
  const auto first = [](i64 in, i64 n) { return in >= n ? (in - n) / 2 : -((n - in + 1) / 2); };
  const i64 top = first(image.height, height), left = first(image.width, width);
  const i64 begin = std::max(left, i64{0}), end = std::min(left + width, image.width);
  for (i64 y = std::max(top, i64{0}); y < std::min(top + height, image.height); ++y)
    std::copy_n(image.pixels.data() + (y * image.width + begin) * image.channels,
                (end - begin) * image.channels,
                out.pixels.data() + ((y - top) * width + begin - left) * image.channels);
  return out;
}

Image to_channels(const Image& image, i64 channels) {
  REDCO_CHECK(channels == 1 || channels == 3, "an image in {} channels", channels);
  if (image.channels == channels) return image;
  Image out{image.height, image.width, channels, {}};
  const size_t n = static_cast<size_t>(image.height * image.width);
  out.pixels.resize(n * static_cast<size_t>(channels));
  const std::uint8_t* from = image.pixels.data();
  std::uint8_t* to = out.pixels.data();
  for (size_t i = 0; i < n; ++i)
    if (channels == 1)
      // 0.299, 0.587 and 0.114 in 16 bits after the point.
      to[i] = static_cast<std::uint8_t>(
          (from[3 * i] * 19595u + from[3 * i + 1] * 38470u + from[3 * i + 2] * 7471u + 0x8000u) >> 16);
    else
      std::fill_n(to + 3 * i, 3, from[i]);
  return out;
}

}  // namespace redco
