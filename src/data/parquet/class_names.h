// The names of classes that the library datasets stores with a table, Parquet or Arrow: its columns of type
// ClassLabel hold integers, and the names are in the file's metadata under the key huggingface.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "data/parquet/schema.h"

namespace redco {

// The features by column in the metadata's JSON, {"info": {"features": {column: feature}}}; null for other
// texts.
nlohmann::json features_of(std::string_view info);
// The names of a feature's classes; none if it has no classes. Names that only repeat the numbers, "0", "1",
// ..., are left out: the values stay numbers.
std::vector<std::string> names_of_classes(const nlohmann::json& feature);
// The feature of the elements of a list; null if there is none.
const nlohmann::json* feature_of_elements(const nlohmann::json& feature);

// Sets class_names of the integer leaves under `root` that have names.
void name_classes(ParquetNode& root, std::string_view info);

// The class name for a value of a column; null for -1, which datasets writes where a label is
// missing. ContentsError, without the place, for a number that has no name.
nlohmann::ordered_json class_name(const std::vector<std::string>& names, const std::string& column,
                                  const nlohmann::ordered_json& value);

}  // namespace redco
