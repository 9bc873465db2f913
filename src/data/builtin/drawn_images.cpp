#include "data/builtin/drawn_images.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <functional>
#include <random>

#include "base/error.h"
#include "base/words.h"

namespace redco {

namespace {

constexpr std::string_view kDrawn = "drawn:";

// Random numbers that depend only on the name; the C++ standard fixes the generator's results.
class Draws {
 public:
  Draws(u64 kind, i64 k) : random_((kind << 48) + static_cast<u64>(k)) {}
  i64 below(i64 n) { return static_cast<i64>(random_() % static_cast<u64>(n)); }
  double within(double low, double high) {
    return low + (high - low) * static_cast<double>(random_() >> 11) * 0x1p-53;
  }

 private:
  std::mt19937_64 random_;
};

// Paints the region `inside` with soft edges: a pixel's coverage is sampled at 4 x 4 points.
void paint(Image& image, const std::array<std::uint8_t, 3>& colour,
           const std::function<bool(double x, double y)>& inside) {
  for (i64 y = 0; y < image.height; ++y)
    for (i64 x = 0; x < image.width; ++x) {
      int hits = 0;
      for (int i = 0; i < 16; ++i)
        hits +=
            inside(static_cast<double>(x) + (i % 4 + 0.5) / 4, static_cast<double>(y) + (i / 4 + 0.5) / 4);
      if (hits == 0) continue;
      std::uint8_t* p = image.pixels.data() + (y * image.width + x) * image.channels;
      for (i64 c = 0; c < image.channels; ++c)
        p[c] =
            static_cast<std::uint8_t>((p[c] * (16 - hits) + colour[static_cast<size_t>(c)] * hits + 8) / 16);
    }
}

struct Colour {
  const char* name;
  std::array<std::uint8_t, 3> rgb;
};
constexpr Colour kColours[] = {
    {"red", {210, 40, 40}}, {"green", {40, 160, 60}}, {"blue", {50, 70, 210}}, {"yellow", {225, 195, 40}}};
constexpr const char* kShapes[] = {"circle", "square", "triangle"};

struct Figure {
  i64 kind, colour, large;
  double x, y, radius;
};
struct Scene {
  Figure first, second;
  bool above;
};

// The first shape is the left one, or the upper one if they are stacked.
Scene scene(i64 k) {
  Draws d(1, k);
  Scene s{};
  s.above = d.below(2) != 0;
  for (Figure* one : {&s.first, &s.second}) {
    one->kind = d.below(3);
    one->colour = d.below(4);
    one->large = d.below(2);
    one->radius = one->large ? d.within(6, 7) : d.within(3, 4);
    const double along = d.within(8, 9) + (one == &s.second ? 15 : 0), across = d.within(9, 23);
    one->x = s.above ? across : along;
    one->y = s.above ? along : across;
  }
  return s;
}

std::string words_of(const Figure& s) {
  return fmt::format("a {} {} {}", s.large ? "large" : "small", kColours[s.colour].name, kShapes[s.kind]);
}

void paint(Image& image, const Figure& s) {
  paint(image, kColours[s.colour].rgb, [&](double x, double y) {
    x = (x - s.x) / s.radius;
    y = (y - s.y) / s.radius;
    if (s.kind == 0) return x * x + y * y < 1;
    if (s.kind == 1) return std::max(std::abs(x), std::abs(y)) < 0.9;
    return y < 0.8 && y > 2 * std::abs(x) - 1.1;  // a triangle with its point at the top
  });
}

// Signs in the square from -1 to 1, as distances to strokes.
struct Stroke {
  double x0, y0, x1, y1;
};
double distance(const Stroke& s, double x, double y) {
  const double dx = s.x1 - s.x0, dy = s.y1 - s.y0, n = dx * dx + dy * dy;
  const double t = n > 0 ? std::clamp(((x - s.x0) * dx + (y - s.y0) * dy) / n, 0.0, 1.0) : 0;
  return std::hypot(x - s.x0 - t * dx, y - s.y0 - t * dy);
}
struct Glyph {
  const char* name;
  std::vector<Stroke> strokes;
  bool ring = false;  // a circle around the center
};
const std::vector<Glyph>& glyphs() {
  static const std::vector<Glyph> all = {
      {"arrow", {{-0.9, 0, 0.9, 0}, {0.3, -0.6, 0.9, 0}, {0.3, 0.6, 0.9, 0}}},
      {"bar", {{0, -0.9, 0, 0.9}}},
      {"box",
       {{-0.8, -0.8, 0.8, -0.8}, {0.8, -0.8, 0.8, 0.8}, {0.8, 0.8, -0.8, 0.8}, {-0.8, 0.8, -0.8, -0.8}}},
      {"cross", {{-0.8, -0.8, 0.8, 0.8}, {-0.8, 0.8, 0.8, -0.8}}},
      {"fork", {{0, 0.9, 0, 0}, {0, 0, -0.7, -0.9}, {0, 0, 0.7, -0.9}}},
      {"hook", {{-0.6, -0.9, -0.6, 0.8}, {-0.6, 0.8, 0.8, 0.8}}},
      {"plus", {{0, -0.9, 0, 0.9}, {-0.9, 0, 0.9, 0}}},
      {"ring", {}, true},
      {"roof", {{-0.9, 0.7, 0, -0.8}, {0, -0.8, 0.9, 0.7}}},
      {"wave",
       {{-0.9, 0.3, -0.4, -0.5}, {-0.4, -0.5, 0.1, 0.3}, {0.1, 0.3, 0.6, -0.5}, {0.6, -0.5, 0.9, 0.1}}},
  };
  return all;
}
i64 glyph_of(i64 k) { return Draws(2, k).below(static_cast<i64>(glyphs().size())); }

Image draw_glyph(i64 k) {
  Image image{28, 28, 1, std::vector<std::uint8_t>(28 * 28, 0)};
  Draws d(2, k);
  const Glyph& g = glyphs()[static_cast<size_t>(d.below(static_cast<i64>(glyphs().size())))];
  const double size = d.within(7, 11), x0 = d.within(12, 16), y0 = d.within(12, 16);
  const double slant = d.within(-0.3, 0.3), width = d.within(1.0, 1.7) / size;
  paint(image, {255, 255, 255}, [&](double x, double y) {
    y = (y - y0) / size;
    x = (x - x0) / size - slant * y;
    double nearest = g.ring ? std::abs(std::hypot(x, y) - 0.8) : 9;
    for (const Stroke& s : g.strokes) nearest = std::min(nearest, distance(s, x, y));
    return nearest < width;
  });
  for (std::uint8_t& p : image.pixels)
    p = static_cast<std::uint8_t>(std::clamp(p * 0.85 + d.within(0, 38), 0.0, 255.0));
  return image;
}

Image draw_shapes(i64 k) {
  Image image{32, 32, 3, std::vector<std::uint8_t>(32 * 32 * 3, 245)};
  const Scene s = scene(k);
  paint(image, s.first);
  paint(image, s.second);
  return image;
}

}  // namespace

bool is_drawn(const std::string& name) { return name.starts_with(kDrawn); }

Image draw_image(const std::string& name, const std::string& where) {
  const size_t slash = name.find('/');
  const std::string kind = name.substr(0, slash);
  const std::string number = slash == std::string::npos ? "" : name.substr(slash + 1);
  i64 k = 0;
  const auto end = std::from_chars(number.data(), number.data() + number.size(), k);
  if (number.empty() || end.ec != std::errc() || end.ptr != number.data() + number.size() || k < 0 ||
      (kind != "drawn:shapes" && kind != "drawn:glyphs"))
    throw ContentsError("{}: unknown image {}, expected drawn:shapes/K or drawn:glyphs/K, K = 0, 1, ...",
                        where, excerpt(name));
  return kind == "drawn:shapes" ? draw_shapes(k) : draw_glyph(k);
}

std::string shapes_caption(i64 k) {
  const Scene s = scene(k);
  return fmt::format("{} {} {}", words_of(s.first), s.above ? "above" : "left of", words_of(s.second));
}

std::string glyph_label(i64 k) { return glyphs()[static_cast<size_t>(glyph_of(k))].name; }

}  // namespace redco
