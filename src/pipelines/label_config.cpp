// Parts of a new model's config that depend on the training data: class names, number of values.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/utf8.h"
#include "base/words.h"
#include "data/builtin/builtin.h"
#include "models/config_tree.h"
#include "pipelines/labelled_data.h"
#include "pipelines/labelled_images.h"
#include "pipelines/pipelines.h"

namespace redco {

using Json = nlohmann::ordered_json;

std::vector<std::string> numbered_names(const char* prefix, i64 n) {
  std::vector<std::string> out;
  for (i64 i = 0; i < n; ++i) out.push_back(prefix + std::to_string(i));
  return out;
}

namespace {

// The sorted labels of the training data; see distinct_labels().
std::vector<std::string> training_labels(const Model& model, const DataSettings& s,
                                         const std::string& cache) {
  const auto files = data_files(s.files(false), false, cache);
  const LabelledInput input = labelled_input_of(model);
  if (input != LabelledInput::image)
    return distinct_labels(files, s, input, model.problem_type() == kSeveralClasses);
  std::vector<std::string> lines, out;
  for (const std::string& f : files) {
    if (is_image_folder(f)) {
      const ImageFolder folder = ImageFolder::open(f);
      out.insert(out.end(), folder.classes().begin(), folder.classes().end());
    } else if (const int dims = idx_dims(f); dims == 1) {
      for (const i32 label : read_idx_labels(f)) out.push_back(std::to_string(label));
    } else if (dims == 0) {
      lines.push_back(f);
    }
  }
  if (!lines.empty()) {
    const auto more = distinct_labels(lines, s, input);
    out.insert(out.end(), more.begin(), more.end());
  }
  return sorted_labels(std::move(out));
}

// The number of target values of the first training example.
i64 training_targets(const Model& model, const DataSettings& s, const std::string& cache) {
  const auto files = data_files(s.files(false), false, cache);
  if (files.empty() || is_image_folder(files[0]) || idx_dims(files[0]) > 0) return 1;
  LabelledReader rows(files[0], s, labelled_input_of(model));
  LabelledRow row;
  while (rows.next(row)) {
    if (row.bad.empty()) return static_cast<i64>(row.label.size());
    skip_or_throw(row.bad, s);
  }
  return 1;
}

}  // namespace

std::vector<std::string> config_classes(const Model& model) {
  const auto& config = model.config().tree().json;
  const auto names = config.find("id2label");
  std::vector<std::string> out;
  if (names == config.end() || !names->is_object()) return out;
  bool named = false;
  for (i64 i = 0; i < static_cast<i64>(names->size()); ++i) {
    const auto it = names->find(std::to_string(i));
    if (it == names->end() || !it->is_string())
      throw ContentsError("[model] id2label of config.json has no class {}", i);
    out.push_back(*it);
    named = named || out.back() != fmt::format("LABEL_{}", i);
  }
  return named ? out : std::vector<std::string>();
}

std::map<std::string, std::string> classification_config(const Model& model, const ConfigRequest& r) {
  const DataSettings& d = r.data;
  std::vector<std::string> names = d.label_names;
  const i64 n = model.num_labels();
  const auto all = numbered_names("", n);
  const std::set<std::string> below_n(all.begin(), all.end());
  if (names.empty()) {
    if (n == 0 || !d.has(false) || !config_classes(model).empty()) return {};
    const std::vector<std::string> found = training_labels(model, d, r.cache);
    const bool numbers =
        std::all_of(found.begin(), found.end(), [&](const std::string& l) { return below_n.count(l) > 0; });
    if (!r.has_head && !r.given("num_labels")) {
      names = found;
      if (names.empty()) return {};  // opening the data will report what is wrong
      if (names.size() == 1)
        throw ContentsError(
            "[data] the training data have only one label, {}. Classification needs at least two", names[0]);
    } else if (numbers) {
      if (r.has_head) return {};
      names = all;
    } else if (static_cast<i64>(found.size()) == n) {
      names = found;
    } else {
      throw UsageError("[data] the training data have {}, but the model has num_labels={}; {}",
                       ClassNames(found).words(), n,
                       r.has_head
                           ? "set model.num_labels or data.label_names to another number for a new head"
                           : fmt::format("remove model.num_labels, or set it to {}", found.size()));
    }
  }
  for (const std::string& name : names)
    if (!is_utf8(name))
      throw ContentsError("[data] the class name '{}' is not valid UTF-8. Rename the class", excerpt(name));
  Json id2label = Json::object(), label2id = Json::object();
  for (std::size_t i = 0; i < names.size(); ++i) {
    id2label[std::to_string(i)] = names[i];
    label2id[names[i]] = i;
  }
  std::map<std::string, std::string> out = {{"num_labels", std::to_string(names.size())},
                                            {"id2label", id2label.dump()},
                                            {"label2id", label2id.dump()}};
  // A new model on feature vectors is for regression by default; here it becomes a classifier.
  if (!r.has_head && model.problem_type() == "regression" && !r.given("problem_type"))
    out["problem_type"] = "\"single_label_classification\"";
  return out;
}

std::map<std::string, std::string> regression_config(const Model& model, const ConfigRequest& r) {
  std::map<std::string, std::string> out;
  if (r.has_head) return out;
  if (model.task() != ModelTask::vector_regression && !r.given("problem_type"))
    out["problem_type"] = "\"regression\"";
  if (!r.given("num_labels") && r.data.has(false))
    out["num_labels"] = std::to_string(training_targets(model, r.data, r.cache));
  return out;
}

}  // namespace redco
