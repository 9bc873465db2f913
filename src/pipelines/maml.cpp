// Model-agnostic meta-learning (Finn et al. 2017): trains parameters from which a few gradient steps on a
// task's support examples adapt the model to the task. The loss is that of the query examples after those
// steps, so it contains gradients, and training differentiates through them.
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "nn/inner_loop.h"
#include "ops/create.h"
#include "ops/cross_entropy.h"
#include "ops/elementwise.h"
#include "ops/embedding.h"
#include "ops/reduce.h"
#include "pipelines/maml_tasks.h"
#include "pipelines/pipelines.h"

namespace redco {

namespace {

using Json = nlohmann::ordered_json;

class Maml : public Pipeline {
 public:
  const ModelParams& params() const override {
    const ModelParams& params = Pipeline::params();
    const MamlSettings& s = settings->maml;
    if (classifies() && model->num_labels() != s.n_ways)
      throw UsageError("[maml] maml.n_ways is {}, but the model has {} labels. Set model.num_labels={}",
                       s.n_ways, model->num_labels(), s.n_ways);
    if (!classifies() && (model->task() != ModelTask::vector_regression || model->n_features() != 1 ||
                          model->num_labels() != 1 || model->problem_type() != "regression"))
      throw UsageError(
          "[maml] this {} model is for {}. Pipeline maml needs image classification (cnn) or scalar "
          "regression (mlp with input_size=1)",
          model->family(), name_of(model->task()));
    return params;
  }

  std::shared_ptr<const Dataset> open(const DataRequest& request) override {
    params();
    const MamlSettings& s = settings->maml;
    std::shared_ptr<const ImageClasses> classes;
    if (classifies()) {
      if (request.evaluation && request.files == settings->data.files(false) &&
          request.files[0] != "builtin:glyphs")
        throw UsageError(
            "[data] data.eval is the same as data.train, expected classes that are not in data.train");
      classes = read_image_classes(request, model->image_shape());
    } else if (request.files != std::vector<std::string>{"builtin:sinusoid"}) {
      throw UsageError("[data] {}: scalar regression needs data.train=builtin:sinusoid", request.files[0]);
    }
    return std::make_shared<TaskSet>(classes, s, request.evaluation ? s.eval_tasks : s.tasks_per_epoch,
                                     static_cast<u64>(settings->train.seed), request.evaluation);
  }

  // One row per task.
  Batch collate(std::span<const Example> mine, const BatchShape& s) const override {
    const MamlSettings& m = settings->maml;
    const i64 classes = classifies() ? m.n_ways : 1;
    return tasks(mine, s, classes * m.n_shots, classes * m.n_query);
  }

  // Per task, the mean over its query examples.
  LossTerms loss(const ParamTree& params, const Batch& batch, const StepContext& ctx) const override {
    const Tensor outputs = adapted(params, batch, ctx);
    LossTerms terms = {{"loss", sum_of_means(outputs, batch, "query")}};
    if (!classifies() || ctx.apply.train) return terms;
    const Tensor right = accuracy(outputs.detached(), batch["query_y"]);  // [tasks]
    terms.push_back({"accuracy", sum_all(right)});
    terms.push_back({"squared accuracy", sum_all(square(right))});
    return terms;
  }
  std::string unit() const override { return "tasks"; }

  // Confidence interval of the mean over tasks: 1.96 standard errors.
  std::map<std::string, double> metrics(const std::map<std::string, double>& means) const override {
    std::map<std::string, double> out = {{"loss", means.at("loss")}};
    if (!classifies()) return out;
    const double mean = means.at("accuracy"), n = static_cast<double>(settings->maml.eval_tasks);
    const double variance = std::max(0.0, means.at("squared accuracy") - mean * mean);
    out["accuracy"] = mean;
    out["accuracy_ci95"] = n > 1 ? 1.96 * std::sqrt(variance / (n - 1)) : 0;
    return wanted_metrics("maml", settings->eval.metrics, std::move(out));
  }

  // {"prediction": [one per query example]}: class indices, or the names in the line.
  std::vector<std::string> predict(const ParamTree& params, std::span<const Example> examples,
                                   const StepContext& ctx) const override {
    std::vector<std::string> out;
    for (size_t i = 0; i < examples.size(); ++i) {
      const Example& e = examples[i];
      const auto rows = [&](const char* field) {
        const i64 width = classifies() ? numel(input_shape()) : 1;
        return static_cast<i64>(e.values.at(field).size()) / width;
      };
      const BatchShape one{.rows = 1, .mine = {0, 1}, .length = 1};
      const Tensor outputs =
          adapted(params, tasks(examples.subspan(i, 1), one, rows("support_x"), rows("query_x")), ctx);
      const std::vector<double> values = to_values(outputs);
      const Json names = e.text.empty() ? Json() : Json::parse(e.text);
      Json said = Json::array();
      const i64 n = outputs.size(-1);
      for (auto row = values.begin(); row != values.end(); row += n) {
        const i64 most = std::max_element(row, row + n) - row;
        if (classifies())
          said.push_back(most < static_cast<i64>(names.size()) ? names[most] : Json(most));
        else
          said.push_back(std::isfinite(*row) ? Json::parse(fmt::format("{}", static_cast<float>(*row)))
                                             : Json());
      }
      out.push_back(Json{{"prediction", said}}.dump(-1, ' ', false, Json::error_handler_t::replace));
    }
    return out;
  }

  std::string output(const Example& e, const std::string& prediction) const override {
    return task_json(e, prediction);
  }
  std::optional<Example> request(const std::string& json, const std::string& where) const override {
    return read_task(json, where, *model);
  }

 private:
  bool classifies() const { return model->task() == ModelTask::image_classification; }
  Shape input_shape() const {
    const ImageShape& s = model->image_shape();
    return classifies() ? Shape{s.channels, s.height, s.width} : Shape{1};
  }

  // x [tasks, examples, ...], y [tasks, examples].
  Batch tasks(std::span<const Example> mine, const BatchShape& s, i64 n_support, i64 n_query) const {
    Batch b;
    b.shape = s;
    for (const std::string set : {"support", "query"}) {
      const i64 n = set == "support" ? n_support : n_query;
      Shape x = input_shape();
      x.insert(x.begin(), n);
      b.fields[set + "_x"] = value_rows(mine, s, set + "_x", x);
      BatchShape wide = s;
      wide.length = n;
      b.fields[set + "_y"] =
          classifies() ? id_rows(mine, wide, set + "_y", 0) : value_rows(mine, s, set + "_y", {n, 1});
    }
    for (const char* term : {"loss", "accuracy", "squared accuracy"})
      b.weights[term] = static_cast<double>(mine.size());
    return b;
  }

  // [tasks, examples, outputs]
  Tensor apply(const ParamTree& p, const Batch& batch, const std::string& set, const StepContext& ctx) const {
    const Tensor x = batch[set + "_x"].with_hidden(1);
    const EncoderInputs in = classifies() ? EncoderInputs{.pixel_values = x} : EncoderInputs{.features = x};
    return model->apply_encoder(p, in, ctx.apply).with_hidden(0);
  }

  // Sum over tasks of the mean over examples.
  Tensor sum_of_means(const Tensor& outputs, const Batch& batch, const std::string& set) const {
    const Tensor& y = batch[set + "_y"];
    const Tensor each = classifies() ? cross_entropy(outputs, y) : square(outputs - y);
    return scale(sum_all(each), 1.0 / static_cast<double>(y.size(1)));
  }

  // The model's outputs for the query examples after the inner steps.
  Tensor adapted(const ParamTree& params, const Batch& batch, const StepContext& ctx) const {
    const MamlSettings& s = settings->maml;
    using Order = FastWeights::Order;
    FastWeights fast(this->params(), params, batch["support_x"].size(0),
                     !ctx.apply.train ? Order::none
                     : s.first_order  ? Order::first
                                      : Order::second);
    for (i64 k = 0; k < s.inner_steps; ++k) {
      const auto scope = ctx.scope("inner", k);
      fast.descend(
          [&](const ParamTree& p) { return sum_of_means(apply(p, batch, "support", ctx), batch, "support"); },
          s.inner_learning_rate);
    }
    return apply(fast.params(), batch, "query", ctx);
  }

  // Each task's share of correct answers; if k outputs share the maximum, each counts 1/k.
  static Tensor accuracy(const Tensor& outputs, const Tensor& labels) {
    const Tensor most = compare(Binary::le, max_last(outputs), outputs);
    return mean(pick(most, labels) / sum(most, {-1}), {-1});
  }
};

}  // namespace

std::unique_ptr<Pipeline> make_maml_pipeline() { return std::make_unique<Maml>(); }

}  // namespace redco
