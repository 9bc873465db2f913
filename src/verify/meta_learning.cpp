#include "verify/meta_learning.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "autograd/grad.h"
#include "base/error.h"
#include "base/file.h"
#include "models/model.h"
#include "ops/create.h"
#include "ops/elementwise.h"
#include "optim/gradients.h"
#include "pipelines/pipelines.h"
#include "verify/expected.h"

namespace redco {

namespace {

using Json = nlohmann::json;

class MetaVerifier {
 public:
  explicit MetaVerifier(const VerifyRequest& r)
      : request_(r), expected_(Expected::open(r.folder, r.expected)) {}

  VerifyReport run() {
    Context& c = Context::current();
    read_fixture();
    make_cnn();
    read_tasks();
    report_.model = model_->family();
    report_.mesh = fmt::format("dp {} x mp {}", c.mesh().dp(), c.mesh().mp());
    for (const std::string order : {"second_order", "first_order"})
      if (expected_.any_with(order + ".")) check(order);
    for (const std::string& name : expected_.names())
      if (!used_.count(name)) report_.lines.push_back({.tensor = name, .note = kUnknown});
    conclude(report_, request_.strict);
    return report_;
  }

 private:
  [[noreturn]] void wrong(const std::string& what) const {
    throw ContentsError("[verify] {}: {}", expected_.path(), what);
  }

  void read_fixture() {
    const std::string path = join_path(parent_path(expected_.path()), "fixture.json");
    try {
      fixture_ = Json::parse(read_text(path));
      settings_.inner_steps = fixture_.at("inner_steps").get<i64>();
      settings_.inner_learning_rate = fixture_.at("inner_lr").get<double>();
    } catch (const Json::exception& e) {
      throw ContentsError("[verify] {}: {}", path, e.what());
    }
    if (settings_.inner_steps < 0 || settings_.inner_steps > 1000 || !(settings_.inner_learning_rate >= 0))
      throw ContentsError("[verify] {}: inner_steps={} or inner_lr={} is out of range", path,
                          settings_.inner_steps, settings_.inner_learning_rate);
  }

  Shape shape(const std::string& name, size_t dims) {
    used_.insert(name);
    if (!expected_.has(name)) wrong(fmt::format("tensor '{}' is missing", name));
    const Shape s = expected_.shape(name);
    if (s.size() != dims || std::any_of(s.begin(), s.end(), [](i64 n) { return n < 1; }))
      wrong(fmt::format("'{}' has shape {}, expected {} dims", name, to_string(s), dims));
    return s;
  }

  // Convolutions, each with pooling, then linear layers; the weights in the file determine how many.
  void make_cnn() {
    const Shape images = shape("support_images", 5);
    Json config = {{"model_type", "cnn"},
                   {"num_channels", images[2]},
                   {"image_size", {images[3], images[4]}},
                   {"conv_channels", Json::array()},
                   {"hidden_sizes", Json::array()}};
    const auto layer = [](const char* kind, size_t i) { return fmt::format("param.{}{}.weight", kind, i); };
    for (size_t i = 1; expected_.has(layer("conv", i)); ++i) {
      const Shape s = shape(layer("conv", i), 4);
      config["conv_channels"].push_back(s[0]);
      config["kernel_size"] = s[2];
    }
    i64 labels = 0;
    for (size_t i = 1; expected_.has(layer("fc", i)); ++i) {
      if (labels) config["hidden_sizes"].push_back(labels);
      labels = shape(layer("fc", i), 2)[0];
    }
    config["num_labels"] = settings_.n_ways = labels;
    model_ = make_model({config.dump(),
                         expected_.path(),
                         request_.config_overrides,
                         request_.ignore_config_keys,
                         {request_.origins, ""}});
    const auto sharded = shard_specs(model_->params().specs, Context::current().mesh().mp(), request_.rules);
    params_ = make_params(model_->params(), sharded.layouts, {.sharding = request_.sharding});
    for (size_t i = 0; i < params_.size(); ++i) {
      const ParamSpec& s = params_.specs()[i];
      const std::string name = "param." + s.name;
      if (shape(name, s.shape.size()) != s.shape)
        wrong(fmt::format("'{}' has shape {}, expected {}", name, to_string(expected_.shape(name)),
                          to_string(s.shape)));
      const std::vector<double> values = expected_.values(name);
      const std::vector<float> rounded(values.begin(), values.end());
      Tensor& p = params_.values()[i];
      Context::current().run(&Kernels::copy,
                             from_values(s.shape, std::span<const float>(rounded), p.layout()), p);
    }
  }

  void read_tasks() {
    for (const std::string set : {"support", "query"}) {
      const Shape images = shape(set + "_images", 5), labels = shape(set + "_labels", 2);
      if (images[0] != labels[0] || images[1] != labels[1] || images[1] % settings_.n_ways != 0)
        wrong(
            fmt::format("'{}_images' {} and '{}_labels' {} do not match, or are not a whole number for each "
                        "of {} classes",
                        set, to_string(images), set, to_string(labels), settings_.n_ways));
      if (tasks_.empty()) tasks_.resize(images[0]);
      if (static_cast<i64>(tasks_.size()) != images[0])
        wrong(fmt::format("{} tasks in '{}_images', {} in 'support_images'", images[0], set, tasks_.size()));
      (set == "support" ? settings_.n_shots : settings_.n_query) = images[1] / settings_.n_ways;
      const std::vector<double> pixels = expected_.values(set + "_images");
      const std::vector<i32> classes = expected_.ids(set + "_labels");
      for (const i32 c : classes)
        if (c < 0 || c >= settings_.n_ways)
          wrong(fmt::format("'{}_labels' holds class {} of {}", set, c, settings_.n_ways));
      for (i64 t = 0; t < images[0]; ++t) {
        const i64 size = numel(images) / images[0], n = images[1];
        tasks_[t].ordinal = t;
        tasks_[t].values[set + "_x"].assign(pixels.begin() + t * size, pixels.begin() + (t + 1) * size);
        tasks_[t].ids[set + "_y"].assign(classes.begin() + t * n, classes.begin() + (t + 1) * n);
      }
    }
  }

  // Sum of the query losses of tasks [first, first + n) with these parameters.
  Tensor loss(Pipeline& pipeline, const ParamTree& params, i64 first, i64 n) const {
    const Context& c = Context::current();
    const Range mine = shard_range(n, 1, c.mesh().dp(), c.coord().dp());
    const Batch batch = pipeline.collate(std::span(tasks_).subspan(first + mine.begin, mine.size()),
                                         {.rows = n, .mine = mine, .length = 1});
    StepContext ctx;
    ctx.apply.train = true;
    return pipeline.loss(params, batch, ctx)[0].sum;
  }

  void check(const std::string& order) {
    const auto pipeline = make_maml_pipeline();
    auto settings = std::make_shared<PipelineSettings>();
    settings->maml = settings_;
    settings->maml.first_order = order == "first_order";
    pipeline->model = model_.get();
    pipeline->settings = settings;
    const i64 n = static_cast<i64>(tasks_.size());

    const ParamTree watched = params_.watched();
    const Tensor mean = scale(loss(*pipeline, watched, 0, n), 1.0 / static_cast<double>(n));
    compare(order, "loss", {item(mean)});
    const auto gradients = reduced_gradients(mean, watched, params_, request_.sharding);
    for (size_t i = 0; i < gradients.size(); ++i)
      compare(order, "grad." + params_.specs()[i].name, to_values(gradients[i]));
    if (!expected_.has(order + ".task_losses")) return;
    std::vector<double> each;
    for (i64 t = 0; t < n; ++t) each.push_back(item(loss(*pipeline, params_, t, 1)));
    compare(order, "task_losses", each);
  }

  // Ten times the difference in fixture.json, as for other fixtures.
  double tolerance(const std::string& order, const std::string& name, double largest) const {
    const std::string key = name.starts_with("grad.") ? name.substr(5) : name;
    const Json of_order = fixture_.value("float32_vs_float64", Json::object()).value(order, Json::object());
    const Json entry = of_order.is_object() ? of_order.value(key, Json()) : Json();
    const Json& difference =
        entry.is_object() && entry.contains("max_abs_diff") ? entry["max_abs_diff"] : entry;
    if (!difference.is_number()) return 1e-5 * largest;
    return std::max(10 * difference.get<double>(), 1e-6 * largest);
  }

  void compare(const std::string& order, const std::string& name, const std::vector<double>& got) {
    const std::string full = order + "." + name;
    if (!expected_.has(full)) return;
    used_.insert(full);
    const std::vector<double> want = expected_.values(full);
    if (got.size() != want.size())
      wrong(fmt::format("'{}' holds {} values, the model computes {}", full, want.size(), got.size()));
    double worst = 0, largest = 0;
    for (size_t i = 0; i < got.size(); ++i) {
      const double d = std::fabs(got[i] - want[i]);
      worst = std::isfinite(d) ? std::max(worst, d) : HUGE_VAL;
      largest = std::max(largest, std::fabs(want[i]));
    }
    const double most = tolerance(order, name, largest);
    report_.lines.push_back(
        {.tensor = full, .difference = worst, .tolerance = most, .checked = true, .passed = worst <= most});
  }

  const VerifyRequest& request_;
  Expected expected_;
  Json fixture_;
  MamlSettings settings_;
  std::unique_ptr<Model> model_;
  ParamTree params_;
  std::vector<Example> tasks_;
  std::set<std::string> used_;
  VerifyReport report_;
};

}  // namespace

bool is_meta_learning(const VerifyRequest& r) {
  const std::string file = r.expected.empty() ? join_path(r.folder, "expected.safetensors") : r.expected;
  if (exists(join_path(r.folder, "config.json")) || !exists(file)) return false;
  return Expected::open(r.folder, r.expected).has("support_images");
}

VerifyReport verify_meta_learning(const VerifyRequest& request) { return MetaVerifier(request).run(); }

}  // namespace redco
