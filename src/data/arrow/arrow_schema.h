// The columns of an Arrow stream.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/types.h"
#include "data/arrow/flat_table.h"

namespace redco {

// How the values of a column are stored. Dates, times and durations are integers.
enum class ArrowLayout : std::uint8_t {
  null,
  boolean,
  integer,
  real,
  decimal,
  text,   // also binary data
  fixed,  // binary data of a fixed size
  view,   // texts and binary data as views
  list,   // also maps
  fixed_list,
  structure
};

struct ArrowField {
  std::string name;
  ArrowLayout layout = ArrowLayout::null;
  bool is_signed = true;
  bool is_text = false;  // of texts, views: UTF-8, not binary data
  bool is_map = false;   // a list of structs of key and value
  i64 width = 0;         // bytes of a number, a fixed value, an offset; elements of a fixed list
  int scale = 0;         // of a decimal
  // Of a column with a dictionary: its id, and the type of the indices; the layout is that of the values.
  std::optional<i64> dictionary;
  i64 index_width = 4;
  bool index_signed = true;
  std::vector<std::string> class_names;  // of integers; see data/parquet/class_names.h
  std::vector<ArrowField> children;
};

// A struct of the stream's columns. UsageError, without the place, for types that redco does not read:
// unions, run-end encoding, list views, intervals; and for big-endian data. ContentsError for a damaged
// schema.
ArrowField read_arrow_schema(const FlatTable& schema);

}  // namespace redco
