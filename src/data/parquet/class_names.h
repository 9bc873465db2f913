// The names of classes that the library datasets stores with a table: its columns of type ClassLabel hold
// integers, and the names are in the file's metadata under the key huggingface.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "data/parquet/schema.h"

namespace redco {

// Sets class_names of the integer leaves under `root` that have names. `info`: the metadata's JSON,
// {"info": {"features": {column: feature}}}; other texts name nothing. Names that only repeat the numbers,
// "0", "1", ..., are left out: the values stay numbers.
void name_classes(ParquetNode& root, std::string_view info);

// The class name for a leaf's value; null for -1, which datasets writes where a label is
// missing. ContentsError, without the place, for a number that has no name.
nlohmann::ordered_json class_name(const ParquetNode& leaf, const nlohmann::ordered_json& value);

}  // namespace redco
