// Classification of texts, text pairs, images and vectors: cross-entropy over the classes, accuracy and F1.
#include "metrics/classification.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/error.h"
#include "base/log.h"
#include "base/words.h"
#include "ops/create.h"
#include "ops/cross_entropy.h"
#include "ops/elementwise.h"
#include "ops/reduce.h"
#include "pipelines/answer_values.h"
#include "pipelines/labelled_data.h"
#include "pipelines/pipelines.h"

namespace redco {

namespace {

using Json = nlohmann::ordered_json;

class Classification : public Pipeline {
 public:
  const ModelParams& params() const override {
    const ModelParams& params = Pipeline::params();
    const bool classifies = model->task() == ModelTask::sequence_classification ||
                            model->task() == ModelTask::image_classification || model->n_features() > 0;
    if (!classifies || model->num_labels() < 2)
      throw UsageError(
          "[pipeline] pipeline: classification needs a classification model of 2 classes or more; this {} "
          "model is for {} ({}). {}",
          model->family(), name_of(model->task()), counted(model->num_labels(), "output"),
          classifies
              ? "Set model.num_labels to the number of classes, or use pipeline: regression for one output"
              : "Give an encoder (bert, roberta, ...), a decoder (llama, qwen2, ...) or an image model (vit)");
    if (model->problem_type() == "regression")
      throw UsageError(
          "[pipeline] pipeline: classification needs classes, but the model's problem_type is regression. Use "
          "pipeline: regression");
    if (several() && labelled_input_of(*model) == LabelledInput::image)
      throw UsageError("[pipeline] problem_type {} is not supported for images", kSeveralClasses);
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
    if (several()) {
      b.fields["targets"] = value_rows(mine, s, "targets", {model->num_labels()});
      return b;
    }
    std::vector<i32> labels;
    for (const Example& e : mine) labels.push_back(static_cast<i32>(e.values.at("targets").at(0)));
    b.fields["labels"] = from_local_ids({s.rows}, labels);
    return b;
  }

  LossTerms loss(const ParamTree& params, const Batch& batch, const StepContext& ctx) const override {
    const Tensor logits = model->apply_encoder(params, data().inputs(batch), ctx.apply);  // [B, classes]
    Scope s("cross-entropy");
    // The mean over the classes of -y log sigmoid(z) - (1 - y) log(1 - sigmoid(z)).
    if (several())
      return {{"loss", scale(sum_all(softplus(logits) - logits * batch["targets"]),
                             1.0 / static_cast<double>(model->num_labels()))}};
    const double smoothing = ctx.apply.train ? settings->train.label_smoothing : 0;
    return {{"loss", sum_all(cross_entropy(logits, batch["labels"], smoothing))}};
  }

  // {"prediction": name, "label_id", "probabilities": {name: p}}: of all classes, or of the 10 most likely if
  // there are more than 64.
  std::vector<std::string> predict(const ParamTree& params, std::span<const Example> examples,
                                   const StepContext& ctx) const override {
    const i64 n = model->num_labels();
    const std::vector<std::string>& names = classes().names();
    const std::vector<double> logits =
        answer_values(model->apply_encoder(params, data().inputs(data().batch_of(examples)), ctx.apply));
    std::vector<std::string> out;
    for (std::size_t r = 0; r < examples.size(); ++r) {
      const std::span<const double> row(logits.data() + r * static_cast<std::size_t>(n),
                                        static_cast<std::size_t>(n));
      if (several()) {
        out.push_back(several_classes(row));
        continue;
      }
      const i64 best = std::max_element(row.begin(), row.end()) - row.begin();
      double total = 0;
      for (const double x : row) total += std::exp(x - row[best]);
      std::vector<i64> shown(n);
      std::iota(shown.begin(), shown.end(), i64{0});
      if (n > 64) {
        std::stable_sort(shown.begin(), shown.end(), [&](i64 a, i64 b) { return row[a] > row[b]; });
        shown.resize(10);
      }
      std::string p;
      for (const i64 c : shown)
        p += fmt::format("{}{}:{}", p.empty() ? "" : ",", json_text(names[c]),
                         json_number(static_cast<float>(std::exp(row[c] - row[best]) / total)));
      out.push_back(fmt::format(R"({{"prediction":{},"label_id":{},"probabilities":{{{}}}}})",
                                json_text(names[best]), best, p));
    }
    return out;
  }

  std::string output(const Example& e, const std::string& prediction) const override {
    const auto targets = e.values.find("targets");
    if (several()) {
      Json label;
      for (i64 c = 0; targets != e.values.end() && c < classes().size(); ++c)
        if (targets->second[static_cast<std::size_t>(c)] > 0) label.push_back(classes().names()[c]);
      return data().output(e, prediction, label.dump(-1, ' ', false, Json::error_handler_t::replace));
    }
    return data().output(e, prediction,
                         targets == e.values.end()
                             ? "null"
                             : json_text(classes().names()[static_cast<std::size_t>(targets->second[0])]));
  }

  bool measures_outputs() const override {
    return settings->eval.metrics != std::vector<std::string>{"loss"};
  }
  // As in scikit-learn. f1 is that of class 1 for two classes, else the mean over classes.
  std::map<std::string, double> output_metrics(std::span<const Example> examples,
                                               const std::vector<std::string>& outputs) const override {
    if (several()) return several_metrics(examples, outputs);
    const auto [predicted, truth] = classes_of(examples, outputs);
    const ClassScores s = class_scores(predicted, truth);
    if (is_whole(examples) && classes().size() <= 20)
      info("[eval] confusion matrix, one row per true class:\n{}",
           confusion_table(predicted, truth, classes().names()));
    return wanted_metrics("classification", settings->eval.metrics,
                          {{"accuracy", s.accuracy},
                           {"f1", classes().size() == 2 ? s.f1_binary : s.f1_macro},
                           {"f1_macro", s.f1_macro},
                           {"f1_micro", s.f1_micro},
                           {"f1_weighted", s.f1_weighted},
                           {"matthews", s.matthews}});
  }

  std::string output_details(std::span<const Example> examples,
                             const std::vector<std::string>& outputs) const override {
    constexpr i64 kMostClasses = 100;  // a larger table cannot be read
    if (several() || !is_whole(examples) || classes().size() > kMostClasses) return "";
    const auto [predicted, truth] = classes_of(examples, outputs);
    const auto n = static_cast<std::size_t>(classes().size());
    std::vector<std::vector<i64>> counts(n, std::vector<i64>(n));
    for (const auto& [pair, count] : confusion(predicted, truth))
      counts.at(static_cast<std::size_t>(pair.first)).at(static_cast<std::size_t>(pair.second)) = count;
    const Json j = {{"confusion_matrix", {{"classes", classes().names()}, {"counts", counts}}}};
    return j.dump(-1, ' ', false, Json::error_handler_t::replace);
  }

 private:
  bool several() const { return model->problem_type() == kSeveralClasses; }

  // {"prediction": [names], "label_ids", "probabilities"} of examples with any number of classes: those with
  // a probability of at least 0.5.
  std::string several_classes(std::span<const double> logits) const {
    const std::vector<std::string>& names = classes().names();
    std::string chosen, ids, p;
    for (std::size_t c = 0; c < logits.size(); ++c) {
      const double probability = 1 / (1 + std::exp(-logits[c]));
      p += fmt::format("{}{}:{}", p.empty() ? "" : ",", json_text(names[c]),
                       json_number(static_cast<float>(probability)));
      if (probability < 0.5) continue;
      chosen += (chosen.empty() ? "" : ",") + json_text(names[c]);
      ids += fmt::format("{}{}", ids.empty() ? "" : ",", c);
    }
    return fmt::format(R"({{"prediction":[{}],"label_ids":[{}],"probabilities":{{{}}}}})", chosen, ids, p);
  }

  // As scikit-learn with matrices of 0 and 1: accuracy is the share of examples whose classes are all right.
  std::map<std::string, double> several_metrics(std::span<const Example> examples,
                                                const std::vector<std::string>& outputs) const {
    const auto n = static_cast<std::size_t>(classes().size());
    std::vector<double> both(n), said(n), truth(n);
    double right = 0;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      std::vector<bool> predicted(n, false);
      for (const Json& c : Json::parse(outputs[i]).at("label_ids")) predicted[c.get<std::size_t>()] = true;
      bool equal = true;
      for (std::size_t c = 0; c < n; ++c) {
        const bool is = examples[i].values.at("targets").at(c) > 0;
        both[c] += is && predicted[c];
        said[c] += predicted[c];
        truth[c] += is;
        equal = equal && is == predicted[c];
      }
      right += equal;
    }
    const auto f1 = [](double both, double said, double truth) {
      return said + truth > 0 ? 2 * both / (said + truth) : 0;
    };
    double all_both = 0, all_said = 0, all_truth = 0, macro = 0, weighted = 0;
    for (std::size_t c = 0; c < n; ++c) {
      all_both += both[c];
      all_said += said[c];
      all_truth += truth[c];
      macro += f1(both[c], said[c], truth[c]) / static_cast<double>(n);
      weighted += f1(both[c], said[c], truth[c]) * truth[c];
    }
    const double micro = f1(all_both, all_said, all_truth);
    return wanted_metrics(
        "classification", settings->eval.metrics,
        {{"accuracy", right / static_cast<double>(std::max<std::size_t>(1, outputs.size()))},
         {"f1", micro},
         {"f1_macro", macro},
         {"f1_micro", micro},
         {"f1_weighted", all_truth > 0 ? weighted / all_truth : 0}});
  }

  // Whether they are all of an evaluation set.
  bool is_whole(std::span<const Example> examples) const {
    return std::any_of(eval_sets.begin(), eval_sets.end(), [&](const EvalSet& set) {
      return set.data->size() == static_cast<i64>(examples.size());
    });
  }
  struct Classes {
    std::vector<i64> predicted, truth;
  };
  static Classes classes_of(std::span<const Example> examples, const std::vector<std::string>& outputs) {
    Classes c;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      c.predicted.push_back(Json::parse(outputs[i]).at("label_id"));
      c.truth.push_back(static_cast<i64>(examples[i].values.at("targets").at(0)));
    }
    return c;
  }
  static std::string json_text(const std::string& s) {
    return Json(s).dump(-1, ' ', false, Json::error_handler_t::replace);
  }

  const ClassNames& classes() const {
    data();
    return *classes_;
  }
  LabelledData& data() const {
    if (!data_) {
      params();
      const i64 n = model->num_labels();
      std::vector<std::string> names = settings->data.label_names;
      if (names.empty()) names = config_classes(*model);
      if (names.empty()) names = numbered_names("LABEL_", n);
      classes_.emplace(std::move(names));
      if (classes_->size() != n)
        throw UsageError("[data] data.label_names has {} classes, but the model has {}", classes_->size(), n);
      data_ = std::make_unique<LabelledData>(*model, tokenizer, *settings,
                                             LabelledTargets{classes_, 1, several()});
    }
    return *data_;
  }

  mutable std::optional<ClassNames> classes_;
  mutable std::unique_ptr<LabelledData> data_;
};

}  // namespace

std::unique_ptr<Pipeline> make_classification_pipeline() { return std::make_unique<Classification>(); }

}  // namespace redco
