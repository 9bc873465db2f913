// Values of the columns of binary tables (Parquet, Arrow) as JSON. Numbers that are not finite are null.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/types.h"

namespace redco {

using CellJson = nlohmann::ordered_json;

// A text, or the bytes of a binary column: UTF-8 is a text, the file of an image a data URI
// (data/images/image_text.h), and anything else null, because no pipeline reads it. ContentsError without the
// place: a text (is_text) that is not UTF-8.
CellJson text_cell(std::string_view bytes, bool is_text, const std::string& column);

CellJson real_cell(double v);
// A number of IEEE 754's binary16.
CellJson half_cell(std::uint16_t bits);
// Two's complement, the highest byte first, times 10^-scale. No bytes: 0.
double decimal_of_bytes(std::string_view big_endian, int scale);

// A list of objects with a key and a content as one object; the list itself unless all keys are texts.
CellJson map_cell(CellJson entries, const std::string& key, const std::string& content);

}  // namespace redco
