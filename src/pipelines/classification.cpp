// Classification of texts, pairs of texts, images and vectors: cross-entropy over the classes, accuracy and
// F1.
#include "metrics/classification.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/error.h"
#include "base/log.h"
#include "ops/create.h"
#include "ops/cross_entropy.h"
#include "ops/reduce.h"
#include "pipelines/labelled_data.h"
#include "pipelines/pipelines.h"

namespace redco {

namespace {

using Json = nlohmann::ordered_json;

// The names of a config's id2label in the order of their numbers; {} where it has none, or transformers'
// placeholders, LABEL_0 and so on.
std::vector<std::string> config_classes(const Model& model) {
  const Json config = Json::parse(model.config_json());
  const auto names = config.find("id2label");
  std::vector<std::string> out;
  if (names == config.end() || !names->is_object()) return out;
  bool named = false;
  for (i64 i = 0; i < static_cast<i64>(names->size()); ++i) {
    const auto it = names->find(std::to_string(i));
    if (it == names->end() || !it->is_string())
      throw ContentsError("[model] id2label of config.json names no class {}", i);
    out.push_back(*it);
    named = named || out.back() != fmt::format("LABEL_{}", i);
  }
  return named ? out : std::vector<std::string>();
}

std::vector<std::string> numbered(const char* prefix, i64 n) {
  std::vector<std::string> out;
  for (i64 i = 0; i < n; ++i) out.push_back(prefix + std::to_string(i));
  return out;
}

class Classification : public Pipeline {
 public:
  const ModelParams& params() const override {
    const ModelParams& params = Pipeline::params();
    const bool classifies = model->task() == ModelTask::sequence_classification ||
                            model->task() == ModelTask::image_classification || model->n_features() > 0;
    if (!classifies || model->num_labels() < 2)
      throw UsageError(
          "[pipeline] pipeline: classification needs a model with a score for each of 2 classes or more; "
          "this {} model is for {} ({} outputs)",
          model->family(), name_of(model->task()), model->num_labels());
    if (!model->problem_type().empty() && model->problem_type() != "single_label_classification")
      throw UsageError(
          "[pipeline] pipeline: classification gives each example one class; the model's problem_type is "
          "{}{}",
          model->problem_type(), model->problem_type() == "regression" ? ": use pipeline: regression" : "");
    return params;
  }

  std::shared_ptr<const Dataset> open(const DataRequest& request) override { return data().open(request); }
  std::optional<Example> request(const std::string& json, const std::string& where) const override {
    return data().request(json, where);
  }

  Batch collate(std::span<const Example> mine, const BatchShape& s) const override {
    Batch b;
    b.shape = s;
    data().collate(mine, b);
    std::vector<i32> labels;
    for (const Example& e : mine) labels.push_back(static_cast<i32>(e.values.at("targets").at(0)));
    b.fields["labels"] = from_local_ids({s.rows}, labels);
    return b;
  }

  LossTerms loss(const ParamTree& params, const Batch& batch, const StepContext& ctx) const override {
    const Tensor logits = model->apply_encoder(params, data().inputs(batch), ctx.apply);  // [B, classes]
    Scope s("cross-entropy");
    const double smoothing = ctx.apply.train ? settings->train.label_smoothing : 0;
    return {{"loss", sum_all(cross_entropy(logits, batch["labels"], smoothing))}};
  }

  // {"prediction": name, "label_id", "probabilities": {name: p}}: of all classes, or the likeliest 10 where
  // there are more than 64.
  std::vector<std::string> predict(const ParamTree& params, std::span<const Example> examples,
                                   const StepContext& ctx) const override {
    const i64 n = model->num_labels();
    const std::vector<std::string>& names = classes().names();
    const std::vector<double> logits =
        to_values(model->apply_encoder(params, data().inputs(data().batch_of(examples)), ctx.apply));
    std::vector<std::string> out;
    for (std::size_t r = 0; r < examples.size(); ++r) {
      const std::span<const double> row(logits.data() + r * static_cast<std::size_t>(n),
                                        static_cast<std::size_t>(n));
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
    return data().output(e, prediction,
                         targets == e.values.end()
                             ? "null"
                             : json_text(classes().names()[static_cast<std::size_t>(targets->second[0])]));
  }

  bool measures_outputs() const override {
    return settings->eval.metrics != std::vector<std::string>{"loss"};
  }
  // scikit-learn's. f1 is that of class 1 where there are two, else the mean over classes.
  std::map<std::string, double> output_metrics(std::span<const Example> examples,
                                               const std::vector<std::string>& outputs) const override {
    std::vector<i64> predicted, truth;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      predicted.push_back(Json::parse(outputs[i]).at("label_id"));
      truth.push_back(static_cast<i64>(examples[i].values.at("targets").at(0)));
    }
    const ClassScores s = class_scores(predicted, truth);
    const bool all = eval_data && eval_data->size() == static_cast<i64>(examples.size());
    if (all && classes().size() <= 20) info("[eval] {}", confusion_table(predicted, truth));
    return wanted_metrics("classification", settings->eval.metrics,
                          {{"accuracy", s.accuracy},
                           {"f1", classes().size() == 2 ? s.f1_binary : s.f1_macro},
                           {"f1_macro", s.f1_macro},
                           {"f1_micro", s.f1_micro},
                           {"f1_weighted", s.f1_weighted},
                           {"matthews", s.matthews}});
  }

 private:
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
      if (names.empty()) names = numbered("LABEL_", n);
      classes_.emplace(std::move(names));
      if (classes_->size() != n)
        throw UsageError("[data] data.label_names has {} classes, the model {}", classes_->size(), n);
      data_ = std::make_unique<LabelledData>(*model, tokenizer, *settings, LabelledTargets{classes_, 1});
    }
    return *data_;
  }

  // Rows are what the data say, columns what the model says.
  std::string confusion_table(std::span<const i64> predicted, std::span<const i64> truth) const {
    const auto counts = confusion(predicted, truth);
    const auto& names = classes().names();
    std::size_t width = 5;
    for (const std::string& n : names) width = std::max(width, std::min<std::size_t>(n.size(), 12));
    std::string s = "confusion matrix, a row for each true class:\n" + std::string(width + 2, ' ');
    for (const std::string& n : names) s += fmt::format(" {:>{}}", n.substr(0, width), width);
    for (i64 t = 0; t < classes().size(); ++t) {
      s += fmt::format("\n  {:<{}}", names[t].substr(0, width), width);
      for (i64 p = 0; p < classes().size(); ++p) {
        const auto it = counts.find({t, p});
        s += fmt::format(" {:>{}}", it == counts.end() ? 0 : it->second, width);
      }
    }
    return s;
  }

  mutable std::optional<ClassNames> classes_;
  mutable std::unique_ptr<LabelledData> data_;
};

}  // namespace

std::unique_ptr<Pipeline> make_classification_pipeline() { return std::make_unique<Classification>(); }

std::map<std::string, std::string> classification_config(const Model& model, const ConfigRequest& r) {
  const DataSettings& d = r.data;
  std::vector<std::string> names = d.label_names;
  const i64 n = model.num_labels();
  const auto is_number_below_n = [&](const std::string& l) {
    const auto all = numbered("", n);
    return std::find(all.begin(), all.end(), l) != all.end();
  };
  if (names.empty()) {
    if (n == 0 || d.train.empty() || !config_classes(model).empty()) return {};
    const std::vector<std::string> found = training_labels(model, d, r.cache);
    const bool numbers = std::all_of(found.begin(), found.end(), is_number_below_n);
    if (!r.has_head && !r.given("num_labels")) {
      names = found;
      if (names.empty()) return {};  // what is wrong with the data, opening them says
      if (names.size() == 1)
        throw ContentsError("[data] data.train has one label only, {}: there is nothing to tell apart",
                            names[0]);
    } else if (numbers) {
      if (r.has_head) return {};
      names = numbered("", n);
    } else if (static_cast<i64>(found.size()) == n) {
      names = found;
    } else {
      throw UsageError("[data] data.train has {}, the model num_labels={}; {}", ClassNames(found).words(), n,
                       r.has_head
                           ? "model.num_labels or data.label_names of another number gives it a new head"
                           : fmt::format("leave model.num_labels out, or set it to {}", found.size()));
    }
  }
  Json id2label = Json::object(), label2id = Json::object();
  for (std::size_t i = 0; i < names.size(); ++i) {
    id2label[std::to_string(i)] = names[i];
    label2id[names[i]] = i;
  }
  std::map<std::string, std::string> out = {{"num_labels", std::to_string(names.size())},
                                            {"id2label", id2label.dump()},
                                            {"label2id", label2id.dump()}};
  // A network of vectors is one for values, unless its config says so.
  if (!r.has_head && model.problem_type() == "regression" && !r.given("problem_type"))
    out["problem_type"] = "\"single_label_classification\"";
  return out;
}

}  // namespace redco
