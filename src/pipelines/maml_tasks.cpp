#include "pipelines/maml_tasks.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <numbers>

#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/words.h"
#include "data/images/image_folder.h"
#include "data/images/image_preprocess.h"

namespace redco {

using Json = nlohmann::ordered_json;

namespace {

// splitmix64's stream from a hash of its purpose.
class Draws {
 public:
  explicit Draws(const std::string& name, u64 seed) : state_(hash64(name, seed)) {}
  u64 next() {
    u64 x = state_ += 0x9e3779b97f4a7c15ull;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
    return x ^ (x >> 31);
  }
  double uniform(double low, double high) {
    return low + (high - low) * (static_cast<double>(next() >> 11) * 0x1p-53);
  }
  i64 below(i64 n) { return static_cast<i64>((static_cast<unsigned __int128>(next()) * n) >> 64); }
  // k of n numbers in random order (Fisher-Yates; only the swapped entries are stored).
  std::vector<i64> choose(i64 n, i64 k) {
    std::map<i64, i64> swapped;
    const auto at = [&](i64 i) {
      const auto it = swapped.find(i);
      return it == swapped.end() ? i : it->second;
    };
    std::vector<i64> out;
    for (i64 i = 0; i < k; ++i) {
      const i64 j = i + below(n - i);
      out.push_back(at(j));
      swapped[j] = at(i);
    }
    return out;
  }

 private:
  u64 state_;
};

struct Point {
  double x, y;
};

// The squared distance of p from the segment a, b.
double distance2(Point p, Point a, Point b) {
  const double dx = b.x - a.x, dy = b.y - a.y, length = dx * dx + dy * dy;
  const double t = length > 0 ? std::clamp(((p.x - a.x) * dx + (p.y - a.y) * dy) / length, 0.0, 1.0) : 0.0;
  const double x = p.x - a.x - t * dx, y = p.y - a.y - t * dy;
  return x * x + y * y;
}

// A glyph has two to four strokes, curves through the unit square; each drawing of it has small random
// deviations. Ink is 1, paper 0.
std::vector<float> draw_glyph(i64 glyph, i64 drawing, const ImageShape& s) {
  constexpr int kPieces = 6;
  Draws shape(fmt::format("glyph {}", glyph), 0), hand(fmt::format("drawing {} {}", glyph, drawing), 0);
  const double turn = hand.uniform(-0.2, 0.2), size = hand.uniform(0.85, 1.1), c = std::cos(turn) * size,
               n = std::sin(turn) * size, right = hand.uniform(-0.06, 0.06), down = hand.uniform(-0.06, 0.06),
               half = hand.uniform(0.028, 0.042);
  std::vector<std::vector<Point>> strokes(static_cast<size_t>(2 + shape.below(3)));
  for (auto& stroke : strokes) {
    Point p[3];
    for (Point& q : p) {
      q = {shape.uniform(0.15, 0.85) - 0.5, shape.uniform(0.15, 0.85) - 0.5};
      q = {q.x + hand.uniform(-0.03, 0.03), q.y + hand.uniform(-0.03, 0.03)};
      q = {c * q.x - n * q.y + 0.5 + right, n * q.x + c * q.y + 0.5 + down};
    }
    for (int i = 0; i <= kPieces; ++i) {
      const double t = static_cast<double>(i) / kPieces, a = (1 - t) * (1 - t), b = 2 * t * (1 - t),
                   d = t * t;
      stroke.push_back({a * p[0].x + b * p[1].x + d * p[2].x, a * p[0].y + b * p[1].y + d * p[2].y});
    }
  }
  std::vector<float> plane;
  const double pixel = 1.0 / static_cast<double>(std::max(s.height, s.width));
  for (i64 y = 0; y < s.height; ++y)
    for (i64 x = 0; x < s.width; ++x) {
      const Point at = {(static_cast<double>(x) + 0.5) / static_cast<double>(s.width),
                        (static_cast<double>(y) + 0.5) / static_cast<double>(s.height)};
      double nearest = 1;
      for (const auto& stroke : strokes)
        for (size_t i = 0; i + 1 < stroke.size(); ++i)
          nearest = std::min(nearest, distance2(at, stroke[i], stroke[i + 1]));
      plane.push_back(static_cast<float>(std::clamp((half - std::sqrt(nearest)) / pixel + 0.5, 0.0, 1.0)));
    }
  std::vector<float> out;
  for (i64 k = 0; k < s.channels; ++k) out.insert(out.end(), plane.begin(), plane.end());
  return out;
}

void add_glyphs(ImageClasses& all, bool evaluation) {
  constexpr i64 kTraining = 200, kEvaluation = 60, kDrawings = 20;
  const i64 first = evaluation ? kTraining : 0, n = evaluation ? kEvaluation : kTraining;
  for (i64 g = first; g < first + n; ++g) {
    all.names.push_back(fmt::format("glyph {}", g));
    auto& images = all.images.emplace_back();
    for (i64 d = 0; d < kDrawings; ++d) images.push_back(draw_glyph(g, d, all.shape));
  }
  all.fingerprint += fmt::format("glyphs {} {} ", first, n);
}

// Scales pixels from 0 (white, or the full colour) to 1: paper becomes 0, the padding value of convolutions.
class Prepare {
 public:
  explicit Prepare(const ImageShape& s) : resize_("", s.channels, s.height, s.width, true) {}
  std::vector<float> operator()(const Image& image, const std::string& where) const {
    std::vector<float> pixels = resize_(image, where);
    for (float& p : pixels) p = (1 - p) / 2;
    return pixels;
  }
  std::string fingerprint() const { return resize_.fingerprint() + " inverted"; }

 private:
  ImagePreprocess resize_;
};

void add_folder(ImageClasses& all, const std::string& path, const Prepare& prepare) {
  const ImageFolder folder = ImageFolder::open(path);
  const size_t first = all.names.size();
  for (const std::string& name : folder.classes()) all.names.push_back(name);
  all.images.resize(all.names.size());
  for (size_t i = 0; i < folder.files().size(); ++i) {
    const i64 at = static_cast<i64>(i);
    const std::string where = folder.where(at);
    const Image image = decode_image(folder.read(at), where);
    all.images[first + static_cast<size_t>(folder.files()[i].label)].push_back(prepare(image, where));
  }
  all.fingerprint += folder.fingerprint() + " ";
}

// [channels, n, n] rotated by 90 degrees to the left, `times` times.
std::vector<float> turn(const std::vector<float>& image, const ImageShape& s, i64 times) {
  std::vector<float> from = image, to(image.size());
  const i64 n = s.height;
  for (i64 k = 0; k < times; ++k) {
    for (i64 c = 0; c < s.channels; ++c)
      for (i64 y = 0; y < n; ++y)
        for (i64 x = 0; x < n; ++x) to[(c * n + n - 1 - x) * n + y] = from[(c * n + y) * n + x];
    std::swap(from, to);
  }
  return from;
}

}  // namespace

std::shared_ptr<const ImageClasses> read_image_classes(const DataRequest& request, const ImageShape& shape) {
  auto all = std::make_shared<ImageClasses>();
  all->shape = shape;
  all->name = fmt::format("{}", fmt::join(request.files, ", "));
  for (const std::string& file : request.files) {
    if (file == "builtin:glyphs") {
      add_glyphs(*all, request.evaluation);
      continue;
    }
    if (file.starts_with("builtin:"))
      throw UsageError(
          "[data] {}: unknown; pipeline maml has builtin:glyphs for models of images and builtin:sinusoid "
          "for models of vectors",
          file);
    const Prepare prepare(shape);
    all->fingerprint += prepare.fingerprint() + " ";
    add_folder(*all, file, prepare);
  }
  return all;
}

Example read_task(const std::string& json, const std::string& where, const Model& model) {
  const bool classes = model.task() == ModelTask::image_classification;
  const Json line = Json::parse(json, nullptr, false);
  const auto wrong = [&](const std::string& what) { return ContentsError("{}: {}", where, what); };
  Json names = Json::array();
  Example e;
  for (const std::string set : {"support", "query"}) {
    const Json list = line.is_object() ? line.value(set, Json()) : Json();
    if (!list.is_array() || list.empty())
      throw wrong(fmt::format("a line of predict.input with \"{}\", a list of examples, is expected", set));
    for (const Json& one : list) {
      auto& x = e.values[set + "_x"];
      if (!classes) {
        const bool pair = set == "support";
        if (pair ? !one.is_array() || one.size() != 2 || !one[0].is_number() || !one[1].is_number()
                 : !one.is_number())
          throw wrong(fmt::format("{}: {}: expected {}", set, excerpt(one.dump()),
                                  pair ? "a pair [x, y] of numbers" : "a number"));
        x.push_back((pair ? one[0] : one).get<float>());
        auto& y = e.values[set + "_y"];
        y.push_back(pair ? one[1].get<float>() : 0);
        if (!std::isfinite(x.back()) || !std::isfinite(y.back()))
          throw wrong(
              fmt::format("{}: {}: expected numbers in the range of a float", set, excerpt(one.dump())));
        continue;
      }
      if (!one.is_object() || !one.value("image", Json()).is_string())
        throw wrong(
            fmt::format("{}: {}: expected an object with \"image\", a file name", set, excerpt(one.dump())));
      const std::string file = one["image"];
      if (!exists(file) || is_folder(file))
        throw wrong(fmt::format("{}: the image file {} does not exist", set, excerpt(file)));
      const auto pixels =
          Prepare(model.image_shape())(decode_image(read_file(file, i64{1} << 30), file), file);
      x.insert(x.end(), pixels.begin(), pixels.end());
      i64 label = 0;
      if (set == "support") {
        const Json name = one.value("label", Json());
        if (!name.is_string() && !name.is_number_integer())
          throw wrong(
              fmt::format("support: {}: expected a \"label\", a name or a number", excerpt(one.dump())));
        label = std::find(names.begin(), names.end(), name) - names.begin();
        if (label == static_cast<i64>(names.size())) names.push_back(name);
        if (label >= model.num_labels())
          throw wrong(fmt::format("support: {} classes, but the model has {} labels", names.size(),
                                  model.num_labels()));
      }
      e.ids[set + "_y"].push_back(static_cast<i32>(label));
    }
  }
  if (classes) e.text = names.dump();
  return e;
}

TaskSet::TaskSet(std::shared_ptr<const ImageClasses> classes, const MamlSettings& s, i64 size, u64 seed,
                 bool evaluation)
    : classes_(std::move(classes)), settings_(s), size_(size), seed_(seed), evaluation_(evaluation) {
  if (!classes_) return;
  const i64 n = static_cast<i64>(classes_->images.size()), each = s.n_shots + s.n_query;
  if (n * (turned() ? 4 : 1) < s.n_ways)
    throw ContentsError("[data] {}: {} classes, but a task needs maml.n_ways = {}", classes_->name, n,
                        s.n_ways);
  for (i64 c = 0; c < n; ++c)
    if (const i64 has = static_cast<i64>(classes_->images[c].size()); has < each)
      throw ContentsError(
          "[data] {}: class '{}' has {} examples; a task takes maml.n_shots + maml.n_query = {} of each "
          "class",
          classes_->name, classes_->names[c], has, each);
  if (turned() && classes_->shape.height != classes_->shape.width)
    throw UsageError("[maml] maml.rotations needs square images, but the model's have {} x {} pixels",
                     classes_->shape.height, classes_->shape.width);
}

std::shared_ptr<const Dataset> TaskSet::of_epoch(std::shared_ptr<const Dataset>, u64, i64 epoch) const {
  auto t = std::make_shared<TaskSet>(*this);
  t->epoch_ = epoch;
  return t;
}

std::vector<float> TaskSet::image(i64 way, i64 number) const {
  const i64 turns = turned() ? 4 : 1;
  const auto& from = classes_->images[way / turns][number];
  return way % turns == 0 ? from : turn(from, classes_->shape, way % turns);
}

Example TaskSet::get(i64 i) const {
  const MamlSettings& s = settings_;
  Example e;
  e.ordinal = i;
  Draws draws(fmt::format("task {} {} {}", evaluation_ ? "evaluation" : "training", epoch_, i), seed_);
  if (!classes_) {
    const double amplitude = draws.uniform(0.1, 5), phase = draws.uniform(0, std::numbers::pi);
    for (i64 k = 0; k < s.n_shots + s.n_query; ++k) {
      const std::string set = k < s.n_shots ? "support" : "query";
      const double x = draws.uniform(-5, 5);
      e.values[set + "_x"].push_back(static_cast<float>(x));
      e.values[set + "_y"].push_back(static_cast<float>(amplitude * std::sin(x - phase)));
    }
    return e;
  }
  const i64 all = static_cast<i64>(classes_->images.size()) * (turned() ? 4 : 1);
  const std::vector<i64> ways = draws.choose(all, s.n_ways);
  Json names = Json::array();
  for (size_t w = 0; w < ways.size(); ++w) {
    const i64 turns = turned() ? 4 : 1;
    const auto& drawings = classes_->images[ways[w] / turns];
    names.push_back(classes_->names[ways[w] / turns] +
                    (ways[w] % turns ? fmt::format(" rotated by {}", 90 * (ways[w] % turns)) : ""));
    const auto picked = draws.choose(static_cast<i64>(drawings.size()), s.n_shots + s.n_query);
    for (size_t k = 0; k < picked.size(); ++k) {
      const std::string set = static_cast<i64>(k) < s.n_shots ? "support" : "query";
      const std::vector<float> pixels = image(ways[w], picked[k]);
      auto& x = e.values[set + "_x"];
      x.insert(x.end(), pixels.begin(), pixels.end());
      e.ids[set + "_y"].push_back(static_cast<i32>(w));
    }
  }
  e.text = names.dump(-1, ' ', false, Json::error_handler_t::replace);
  return e;
}

std::string task_json(const Example& e, const std::string& prediction) {
  Json j = {{"id", e.id.empty() ? Json(e.ordinal) : Json::parse(e.id)}};
  const auto number = [](float x) { return Json::parse(fmt::format("{}", x)); };
  if (!e.text.empty()) {
    j["classes"] = Json::parse(e.text);
  } else {
    for (const std::string set : {"support", "query"}) {
      const auto &x = e.values.at(set + "_x"), &y = e.values.at(set + "_y");
      for (size_t i = 0; i < x.size(); ++i) j[set].push_back(Json::array({number(x[i]), number(y[i])}));
    }
  }
  j.update(Json::parse(prediction));
  return j.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string TaskSet::fingerprint() const {
  const MamlSettings& s = settings_;
  return fmt::format("tasks 1: {} ways, {} shots, {} query, {} tasks, seed {}{}{}; {}", s.n_ways, s.n_shots,
                     s.n_query, size_, seed_, evaluation_ ? ", evaluation" : "", turned() ? ", turned" : "",
                     classes_ ? classes_->fingerprint : "sinusoid");
}

std::string TaskSet::describe() const {
  const MamlSettings& s = settings_;
  if (!classes_)
    return fmt::format("{} sine curves, {} support points and {} query points", size_, s.n_shots, s.n_query);
  size_t images = 0;
  for (const auto& c : classes_->images) images += c.size();
  return fmt::format(
      "{} tasks of {} classes, {} and {} query images per class; {} images of {} x {} in {} classes{}", size_,
      s.n_ways, counted(s.n_shots, "support image"), s.n_query, images, classes_->shape.height,
      classes_->shape.width, classes_->names.size(), turned() ? ", each in four rotations" : "");
}

}  // namespace redco
