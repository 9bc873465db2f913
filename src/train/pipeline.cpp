#include "train/pipeline.h"

#include <dlfcn.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "ops/create.h"
#include "ops/dispatch.h"

namespace redco {

using Json = nlohmann::ordered_json;

const Tensor& Batch::operator[](const std::string& name) const {
  auto it = fields.find(name);
  REDCO_CHECK(it != fields.end(), "the batch has no field {}", name);
  return it->second;
}

std::unique_ptr<Restore<SharedText>> StepContext::scope(const std::string& name, i64 k) const {
  Context& c = Context::current();
  return std::make_unique<Restore<SharedText>>(c.random_scope,
                                               fmt::format("{}#{}.{}", c.random_scope.text(), name, k));
}

double StepContext::agree(const Tensor& value) const {
  const double v = item(value);
  return Context::current().world().agree(v);
}

std::vector<std::string> Pipeline::predict(const ParamTree&, std::span<const Example>,
                                           const StepContext&) const {
  throw UsageError("[predict] this pipeline has no predict function");
}

const ModelParams& Pipeline::params() const {
  if (!model)
    throw UsageError("[model] this pipeline needs a model. Set model.path, model.preset or model.arch");
  return model->params();
}

std::vector<ParamGroup> Pipeline::groups() const {
  std::set<std::string> fixed;
  for (const ParamSpec& s : params().specs)
    if (!s.trained()) fixed.insert(s.name);
  return {
      {.name = "all", .has = [fixed](const std::string& name) { return !fixed.count(name); }, .term = ""}};
}

std::shared_ptr<const Dataset> Pipeline::source(const ParamTree&, const StepContext& ctx) {
  if (!train_data) throw UsageError("[data] data.train is missing. Set it to the training files");
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

i64 ExampleList::length(i64 i) const {
  size_t longest = 0;
  for (const auto& [name, ids] : examples_[i].ids) longest = std::max(longest, ids.size());
  return static_cast<i64>(longest);
}

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
      REDCO_CHECK(static_cast<i64>(ids.size()) <= s.length, "{} ids in a batch of length {}", ids.size(),
                  s.length);
      std::copy(ids.begin(), ids.end(), rows.begin() + static_cast<i64>(r) * s.length);
    }
  }
  return from_local_ids({s.rows, s.length}, rows);
}

Tensor value_rows(std::span<const Example> mine, const BatchShape& s, const std::string& field,
                  const Shape& row_shape) {
  Shape shape = {s.rows};
  shape.insert(shape.end(), row_shape.begin(), row_shape.end());
  std::vector<float> rows;
  if (!Context::current().is_meta())
    for (const Example& e : mine) {
      const auto& v = e.values.at(field);
      REDCO_CHECK(static_cast<i64>(v.size()) == numel(row_shape), "{} values for {}", v.size(),
                  to_string(row_shape));
      rows.insert(rows.end(), v.begin(), v.end());
    }
  return from_local_values(shape, rows);
}

std::unique_ptr<Pipeline> load_pipeline(const std::string& path) {
  if (!std::filesystem::exists(path))
    throw UsageError("[pipeline] {} does not exist. Set pipeline to a shared object or a built-in pipeline",
                     path);
  // dlopen searches other folders for names without a slash.
  void* so = dlopen(std::filesystem::absolute(path).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!so)
    throw UsageError(
        "[pipeline] {} can't be loaded: {}. Expected a shared object built with this version of redco", path,
        dlerror());
  auto abi = reinterpret_cast<int (*)()>(dlsym(so, "redco_pipeline_abi"));
  auto make = reinterpret_cast<Pipeline* (*)()>(dlsym(so, "redco_make_pipeline"));
  if (!abi || !make)
    throw UsageError(
        "[pipeline] {} is not a pipeline. Add REDCO_PIPELINE(Class) to its source and rebuild it", path);
  if (abi() != kPipelineAbi)
    throw UsageError("[pipeline] {} was built for pipeline version {}, this redco has version {}. Rebuild it",
                     path, abi(), kPipelineAbi);
  std::unique_ptr<Pipeline> pipeline(in_pipeline("the constructor", make));
  if (!pipeline) throw UsageError("[pipeline] {}: the constructor returned no pipeline", path);
  return pipeline;
}

void rethrow_from_pipeline(const char* function) {
  try {
    throw;
  } catch (const Error&) {
    throw;
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& e) {
    throw Error(ExitCode::bug, fmt::format("[pipeline] {} failed: {}", function, e.what()));
  } catch (...) {
    throw Error(ExitCode::bug,
                fmt::format("[pipeline] {} failed with an exception that is not a std::exception", function));
  }
}

}  // namespace redco
