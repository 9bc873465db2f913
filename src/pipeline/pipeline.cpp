#include "pipeline/pipeline.h"

#include <fmt/ranges.h>

#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>

#include "base/error.h"
#include "base/words.h"
#include "ops/create.h"
#include "ops/dispatch.h"
#include "ops/elementwise.h"

namespace redco {

using Json = nlohmann::ordered_json;

const Tensor& Batch::operator[](const std::string& name) const {
  auto it = fields.find(name);
  if (it == fields.end()) {
    std::vector<std::string> names;
    for (const auto& [known, tensor] : fields) names.push_back(known);
    const std::string near = nearest(name, names);
    REDCO_CHECK(false, "the batch has no field '{}'; its fields are {}{}", name, fmt::join(names, ", "),
                near.empty() ? "" : fmt::format("; did you mean '{}'?", near));
  }
  return it->second;
}

void no_such_field(const std::string& name, const std::vector<std::string>& has) {
  const std::string near = nearest(name, has);
  REDCO_CHECK(false, "an example has no field '{}'; it has {}{}", name,
              has.empty() ? "none of this kind (id_rows() reads ids, value_rows() values)"
                          : fmt::format("{}", fmt::join(has, ", ")),
              near.empty() ? "" : fmt::format("; did you mean '{}'?", near));
  std::abort();  // not reached
}

void missing_part(const Model*) {
  throw UsageError(
      "[model] this pipeline needs a model. Set model.path, model.preset or model.arch, or define params() in a "
      "pipeline of yours");
}
void missing_part(const Tokenizer*) {
  throw UsageError(
      "[model] this pipeline needs a tokenizer. Set model.tokenizer (`bytes` or a tokenizer's folder)");
}
void missing_part(const Dataset*) {
  throw UsageError("[data] data.train is missing. Set it to the training files");
}

std::unique_ptr<Restore<SharedText>> StepContext::scope(const std::string& name, i64 k) const {
  Context& c = Context::current();
  return std::make_unique<Restore<SharedText>>(c.random_scope,
                                               fmt::format("{}#{}.{}", c.random_scope.text(), name, k));
}

void StepContext::add_sum(const std::string& name, const Tensor& part) const {
  if (!sums) return;
  const NoGrad off;
  REDCO_CHECK(part.defined() && part.is_float(), "add_sum('{}') adds {}; expected a floating tensor", name,
              part.defined() ? describe(part) : "an undefined tensor");
  Tensor& sum = (*sums)[name];
  REDCO_CHECK(!sum.defined() || sum.shape() == part.shape(),
              "add_sum('{}') adds {} to {}; expected equal shapes", name, describe(part), describe(sum));
  REDCO_CHECK(
      !sum.defined() || !part.used_layout()[Axis::dp].is_sharded(),
      "add_sum('{}') adds {}, one row per row of the micro-batch, to the rows of another micro-batch; "
      "add a sum or a mean over the rows",
      name, describe(part));
  sum = sum.defined() ? sum + part.detached() : part.detached();
}

double StepContext::agree(const Tensor& value) const {
  const double v = item(value);
  return Context::current().world().agree(v);
}

std::vector<std::string> Pipeline::predict(const ParamTree&, std::span<const Example>,
                                           const StepContext&) const {
  throw UsageError("[predict] this pipeline has no predict function");
}

std::string Pipeline::prediction_settings() const {
  const Json own = Json::parse(settings->own);
  return own.empty() ? "{}" : Json({{"settings", own}}).dump();
}

const ModelParams& Pipeline::params() const { return model->params(); }

namespace {

void check_specs(const ModelParams& all) {
  std::set<std::string> seen;
  constexpr double kMost = 1e15;  // elements
  for (const ParamSpec& s : all.specs) {
    REDCO_CHECK(!s.name.empty() && std::ranges::none_of(s.name, [](unsigned char c) { return c < ' '; }),
                "the name '{}' of a parameter is empty or has control characters", excerpt(s.name));
    const int rank = static_cast<int>(s.shape.size());
    REDCO_CHECK(!s.cut || (*s.cut >= -1 && *s.cut < rank),
                "the parameter {} has cut={}; expected a dim of {}, or -1", s.name, *s.cut,
                to_string(s.shape));
    REDCO_CHECK(std::accumulate(s.shape.begin(), s.shape.end(), 1.0, std::multiplies<>()) <= kMost,
                "the parameter {} is declared with the shape {}, too many elements", s.name,
                to_string(s.shape));
    REDCO_CHECK(std::ranges::all_of(s.shape, [](i64 n) { return n > 0; }),
                "the parameter {} is declared with the shape {}; expected positive sizes", s.name,
                to_string(s.shape));
    REDCO_CHECK(
        seen.insert(s.name).second,
        "the parameter {} is declared twice. A parameter of the pipeline needs a name that no other one of "
        "the pipeline or of the model has",
        s.name);
  }
}

}  // namespace

ModelParams Pipeline::all_params() const {
  ModelParams all = in_pipeline(*this, "params()", [&] { return params(); });
  if (model) {
    std::set<std::string> of_model;
    for (const ParamSpec& s : model->params().specs) of_model.insert(s.name);
    const auto is_models = [&](const ParamSpec& s) { return of_model.count(s.name) > 0; };
    if (std::ranges::any_of(all.specs, is_models))
      for (ParamSpec& s : all.specs)
        if (!is_models(s)) s.owner = kExtra;
  }
  ModelParams extra = in_pipeline(*this, "extra_params()", [&] { return extra_params(); });
  for (ParamSpec& s : extra.specs) {
    s.owner = model ? kExtra : "";
    all.specs.push_back(std::move(s));
  }
  all.aliases.merge(extra.aliases);
  for (const auto& [name, named] : models) {
    const DType type = named.weights;
    ModelParams theirs = named.model->params();
    ModelParams own = in_pipeline(*this, "extra_params_of()", [&] { return extra_params_of(name); });
    if (!own.specs.empty() && !named.frozen)
      throw UsageError(
          "[pipeline] extra_params_of(\"{}\") declares parameters of a model that is trained (models.{}.frozen "
          "is false). Declare them in extra_params()",
          name, name);
    for (ParamSpec& s : own.specs) {
      s.precise = true;
      theirs.specs.push_back(std::move(s));
    }
    theirs.aliases.merge(own.aliases);
    all.add(name, theirs, named.frozen, type == DType::f32 ? std::nullopt : std::optional(type));
  }
  in_pipeline(*this, "params()", [&] { check_specs(all); });
  return all;
}

std::vector<ParamGroup> Pipeline::checked_groups() const {
  std::vector<ParamGroup> all = in_pipeline(*this, "groups()", [&] { return groups(); });
  std::set<std::string> names;
  for (const ParamGroup& spec : all) {
    if (spec.name.empty() || !names.insert(spec.name).second)
      throw UsageError(
          "[pipeline] the parameter group name '{}' is empty or used twice; expected a unique name",
          spec.name);
    if (!spec.has)
      throw UsageError("[pipeline] parameter group '{}' has no function `has`, which selects its parameters",
                       spec.name);
    if (spec.period < 1)
      throw UsageError("[pipeline] parameter group '{}' has a period of {}; expected 1 or more", spec.name,
                       spec.period);
    if (spec.clip_grad_norm && !(*spec.clip_grad_norm > 0))
      throw UsageError("[pipeline] parameter group '{}' has clip_grad_norm={}; expected more than 0",
                       spec.name, *spec.clip_grad_norm);
    if (spec.ema_of && !spec.tau_of && !(spec.tau >= 0 && spec.tau <= 1))
      throw UsageError("[pipeline] parameter group '{}' has tau={}; expected 0 to 1", spec.name, spec.tau);
  }
  return all;
}

std::vector<EvalSet> Pipeline::checked_evaluation() {
  std::vector<EvalSet> sets = in_pipeline(*this, "evaluation()", [&] { return evaluation(); });
  for (const EvalSet& set : sets)
    if (!set.data)
      throw UsageError("[pipeline] evaluation() returned null as the data of {}; expected a data set",
                       set.name.empty() ? "a set" : fmt::format("the set '{}'", set.name));
  return sets;
}

const NamedModel& Pipeline::named_model(const std::string& name) const {
  const auto it = models.find(name);
  if (it != models.end()) return it->second;
  std::vector<std::string> names;
  for (const auto& [known, named] : models) names.push_back(known);
  throw UsageError(
      "[models] this pipeline needs the model '{}', and the job has {}. Add it, e.g. models: {{{}: {{path: "
      "FOLDER, frozen: true}}}}. The command predict loads the models that predicts_with() names",
      name, names.empty() ? "no models:" : fmt::format("only {}", fmt::join(names, ", ")), name);
}

std::vector<ParamGroup> Pipeline::groups() const {
  return {{.name = "all", .has = [](const std::string&) { return true; }, .term = ""}};
}

std::shared_ptr<const Dataset> Pipeline::source(const ParamTree&, const StepContext& ctx) {
  return train_data->of_epoch(train_data, static_cast<u64>(settings->train.seed), ctx.epoch);
}

std::map<std::string, double> Pipeline::metrics(const std::map<std::string, double>& means) const {
  std::map<std::string, double> out = means;
  if (!means.empty() && !out.count("loss")) out["loss"] = means.begin()->second;
  return out;
}

std::string Pipeline::output(const Example& example, const std::string& prediction) const {
  nlohmann::ordered_json j = {{"id", example.ordinal}};
  if (!example.id.empty()) j["id"] = nlohmann::ordered_json::parse(example.id, nullptr, false);
  const auto answer = nlohmann::ordered_json::parse(prediction, nullptr, false);
  if (answer.is_object()) {
    j.update(answer);
  } else {
    j["prediction"] = prediction;
  }
  return j.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

std::shared_ptr<const Dataset> ordered_examples(std::vector<Example> examples, std::string fingerprint) {
  std::vector<i64> order(examples.size());
  std::iota(order.begin(), order.end(), 0);
  return std::make_shared<ExampleList>(std::move(examples), std::move(fingerprint), std::move(order));
}

i64 ExampleList::length(i64 i) const { return longest_ids(examples_[place(i)]); }

std::string examples_to_json(const std::vector<Example>& examples) {
  Json list = Json::array();
  for (const Example& e : examples) {
    for (const auto& [name, values] : e.values)
      for (const float v : values)
        if (!std::isfinite(v))
          throw Error(ExitCode::non_finite, fmt::format("[pipeline] an example's '{}' is not finite", name));
    list.push_back(
        {{"ordinal", e.ordinal}, {"ids", e.ids}, {"values", e.values}, {"text", e.text}, {"id", e.id}});
  }
  return list.dump();
}

std::vector<Example> examples_from_json(const std::string& json) {
  std::vector<Example> out;
  try {
    for (const Json& j : Json::parse(json)) {
      Example e;
      e.ordinal = j.at("ordinal");
      e.ids = j.at("ids").get<decltype(e.ids)>();
      e.values = j.at("values").get<decltype(e.values)>();
      e.text = j.at("text");
      e.id = j.value("id", "");
      out.push_back(std::move(e));
    }
  } catch (const Json::exception& e) {
    throw ContentsError("[pipeline] the examples saved in the checkpoint are not readable: {}", e.what());
  }
  return out;
}

Tensor id_rows(std::span<const Example> mine, const BatchShape& s, const std::string& field, i32 fill) {
  std::vector<i32> rows;
  if (!Context::current().is_meta()) {
    rows.assign(s.mine.size() * s.length, fill);
    for (size_t r = 0; r < mine.size(); ++r) {
      const auto& ids = mine[r].ids.at(field);
      REDCO_CHECK(static_cast<i64>(ids.size()) <= s.length,
                  "the field '{}' of an example has {} ids, and the batch a length of {} (Dataset::length())",
                  field, ids.size(), s.length);
      std::copy(ids.begin(), ids.end(), rows.begin() + static_cast<i64>(r) * s.length);
    }
  }
  return from_local_ids({s.rows, s.length}, rows);
}

namespace {

// The elements of a field with a fixed number of them, row by row; `of` is Example::ids or Example::values.
template <class T, class Field>
std::vector<T> rows_of(std::span<const Example> mine, const std::string& field, const Shape& row_shape,
                       Field Example::*of) {
  std::vector<T> rows;
  if (Context::current().is_meta()) return rows;
  for (const Example& e : mine) {
    const std::vector<T>& v = (e.*of).at(field);
    REDCO_CHECK(static_cast<i64>(v.size()) == numel(row_shape),
                "the field '{}' of an example has {} values; expected {} for the shape {}", field, v.size(),
                numel(row_shape), to_string(row_shape));
    rows.insert(rows.end(), v.begin(), v.end());
  }
  return rows;
}

Shape with_rows(i64 rows, const Shape& row_shape) {
  Shape shape = {rows};
  shape.insert(shape.end(), row_shape.begin(), row_shape.end());
  return shape;
}

}  // namespace

Tensor fixed_id_rows(std::span<const Example> mine, const BatchShape& s, const std::string& field,
                     const Shape& row_shape) {
  return from_local_ids(with_rows(s.rows, row_shape), rows_of<i32>(mine, field, row_shape, &Example::ids));
}

Tensor value_rows(std::span<const Example> mine, const BatchShape& s, const std::string& field,
                  const Shape& row_shape) {
  return from_local_values(with_rows(s.rows, row_shape),
                           rows_of<float>(mine, field, row_shape, &Example::values));
}

}  // namespace redco
