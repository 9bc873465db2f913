// Regression from texts, text pairs, images and vectors to one value or several: mean squared error, and
// correlation of predictions and values.
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "metrics/classification.h"
#include "ops/create.h"
#include "ops/elementwise.h"
#include "ops/reduce.h"
#include "pipelines/answer_values.h"
#include "pipelines/labelled_data.h"
#include "pipelines/pipelines.h"

namespace redco {

namespace {

using Json = nlohmann::ordered_json;

class Regression : public Pipeline {
 public:
  const ModelParams& params() const override {
    const ModelParams& params = Pipeline::params();
    if (model->num_labels() < 1)
      throw UsageError("[pipeline] pipeline: regression needs a regression model; this {} model is for {}",
                       model->family(), name_of(model->task()));
    if (!model->problem_type().empty() && model->problem_type() != "regression")
      throw UsageError(
          "[pipeline] pipeline: regression: the model's problem_type is {}. Use pipeline: classification",
          model->problem_type());
    return params;
  }

  std::shared_ptr<const Dataset> open(const DataRequest& request) override { return data().open(request); }
  std::optional<Example> request(const std::string& json, const std::string& where) const override {
    return data().request(json, where);
  }
  bool concurrent_requests() const override { return data().requests_images(); }

  Batch collate(std::span<const Example> mine, const BatchShape& s) const override {
    Batch b;
    b.shape = s;
    data().collate(mine, b);
    b.fields["targets"] = value_rows(mine, s, "targets", {model->num_labels()});
    return b;
  }

  // The mean over an example's values, summed over examples.
  LossTerms loss(const ParamTree& params, const Batch& batch, const StepContext& ctx) const override {
    const Tensor y = model->apply_encoder(params, data().inputs(batch), ctx.apply);  // [B, values]
    Scope s("squared error");
    return {{"loss",
             scale(sum_all(square(y - batch["targets"])), 1.0 / static_cast<double>(model->num_labels()))}};
  }

  // {"prediction": number}, or a list for several values.
  std::vector<std::string> predict(const ParamTree& params, std::span<const Example> examples,
                                   const StepContext& ctx) const override {
    const std::vector<double> y =
        answer_values(model->apply_encoder(params, data().inputs(data().batch_of(examples)), ctx.apply));
    const std::size_t n = static_cast<std::size_t>(model->num_labels());
    std::vector<std::string> out;
    for (std::size_t r = 0; r < examples.size(); ++r)
      out.push_back(fmt::format(R"({{"prediction":{}}})", json_values({y.data() + r * n, n})));
    return out;
  }

  std::string output(const Example& e, const std::string& prediction) const override {
    const auto it = e.values.find("targets");
    if (it == e.values.end()) return data().output(e, prediction, "null");
    return data().output(e, prediction,
                         json_values(std::vector<double>(it->second.begin(), it->second.end())));
  }

  bool measures_outputs() const override {
    return settings->eval.metrics != std::vector<std::string>{"loss"};
  }
  // For several values, the mean of each metric over the values.
  std::map<std::string, double> output_metrics(std::span<const Example> examples,
                                               const std::vector<std::string>& outputs) const override {
    const std::size_t n = static_cast<std::size_t>(model->num_labels());
    std::vector<std::vector<double>> said(n), truth(n);
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const Json p = Json::parse(outputs[i]).at("prediction");
      for (std::size_t k = 0; k < n; ++k) {
        const Json& one = p.is_array() ? p.at(k) : p;
        said[k].push_back(one.is_number() ? one.get<double>() : std::nan(""));
        truth[k].push_back(examples[i].values.at("targets").at(k));
      }
    }
    std::map<std::string, double> out;
    const double each = 1 / static_cast<double>(n), row = each / static_cast<double>(outputs.size());
    for (std::size_t k = 0; k < n; ++k) {
      for (std::size_t i = 0; i < said[k].size(); ++i) {
        const double off = said[k][i] - truth[k][i];
        out["mse"] += row * off * off;
        out["mae"] += row * std::abs(off);
      }
      out["pearson"] += each * pearson(said[k], truth[k]);
      out["spearman"] += each * spearman(said[k], truth[k]);
    }
    return wanted_metrics("regression", settings->eval.metrics, std::move(out));
  }

 private:
  static std::string json_values(std::span<const double> v) {
    std::string s;
    for (const double x : v) s += (s.empty() ? "" : ", ") + json_number(static_cast<float>(x));
    return v.size() == 1 ? s : "[" + s + "]";
  }

  LabelledData& data() const {
    if (!data_) {
      params();
      data_ = std::make_unique<LabelledData>(*model, tokenizer, *settings,
                                             LabelledTargets{{}, model->num_labels()});
    }
    return *data_;
  }
  mutable std::unique_ptr<LabelledData> data_;
};

}  // namespace

std::unique_ptr<Pipeline> make_regression_pipeline() { return std::make_unique<Regression>(); }

}  // namespace redco
