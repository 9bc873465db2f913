#include "data/parquet/class_names.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>

#include "base/error.h"

namespace redco {

namespace {

using FeatureJson = nlohmann::json;

void name_node(ParquetNode& n, const FeatureJson& feature) {
  const bool integer = n.type == ParquetType::int32 || n.type == ParquetType::int64;
  if (n.children.empty()) {
    if (integer) n.class_names = names_of_classes(feature);
  } else if (n.is_list) {
    // A list of pyarrow: the list, a repeated node, the element.
    ParquetNode& repeated = n.children[0];
    ParquetNode& element = repeated.children.size() == 1 ? repeated.children[0] : repeated;
    if (const FeatureJson* f = feature_of_elements(feature)) name_node(element, *f);
  } else if (feature.is_object()) {
    for (ParquetNode& c : n.children)
      if (const auto it = feature.find(c.name); it != feature.end()) name_node(c, *it);
  }
}

}  // namespace

std::vector<std::string> names_of_classes(const FeatureJson& feature) {
  if (!feature.is_object()) return {};
  const auto type = feature.find("_type"), names = feature.find("names");
  if (type == feature.end() || *type != "ClassLabel" || names == feature.end() || !names->is_array())
    return {};
  std::vector<std::string> out;
  bool numbers = true;
  for (const FeatureJson& name : *names) {
    if (!name.is_string()) return {};
    numbers = numbers && name == std::to_string(out.size());
    out.push_back(name);
  }
  return numbers ? std::vector<std::string>() : out;
}

const FeatureJson* feature_of_elements(const FeatureJson& feature) {
  if (feature.is_array() && feature.size() == 1) return &feature[0];
  return feature.is_object() && feature.contains("feature") ? &feature["feature"] : nullptr;
}

FeatureJson features_of(std::string_view info) {
  const FeatureJson j = info.empty() ? FeatureJson() : FeatureJson::parse(info, nullptr, false);
  if (!j.is_object() || !j.contains("info") || !j["info"].is_object() || !j["info"].contains("features"))
    return {};
  return j["info"]["features"];
}

void name_classes(ParquetNode& root, std::string_view info) { name_node(root, features_of(info)); }

nlohmann::ordered_json class_name(const std::vector<std::string>& names, const std::string& column,
                                  const nlohmann::ordered_json& value) {
  if (value == -1) return nullptr;
  const auto n = static_cast<i64>(names.size());
  if (!value.is_number_integer() || value < 0 || value >= n)
    throw ContentsError("column {} has class {}, but the file's metadata name the classes 0 to {}", column,
                        value.dump(), n - 1);
  return names[value.get<std::size_t>()];
}

}  // namespace redco
