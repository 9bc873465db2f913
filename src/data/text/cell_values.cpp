#include "data/text/cell_values.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/utf8.h"
#include "data/images/image_text.h"

namespace redco {

CellJson text_cell(std::string_view bytes, bool is_text, const std::string& column) {
  if (!is_text)
    if (const auto file = media_text_of(bytes)) return *file;
  if (is_utf8(bytes)) return std::string(bytes);
  if (is_text) throw ContentsError("column {} has a text that is not UTF-8", column);
  return nullptr;
}

CellJson real_cell(double v) { return std::isfinite(v) ? CellJson(v) : CellJson(); }

CellJson half_cell(std::uint16_t bits) {
  const int exponent = bits >> 10 & 31;
  const double fraction = bits & 1023, sign = bits >> 15 ? -1 : 1;
  if (exponent == 31) return nullptr;
  return sign * (exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25));
}

double decimal_of_bytes(std::string_view big_endian, int scale) {
  double v = big_endian.empty() || static_cast<signed char>(big_endian[0]) >= 0 ? 0 : -1;
  for (const char c : big_endian) v = v * 256 + static_cast<std::uint8_t>(c);
  return v * std::pow(10.0, -scale);
}

CellJson map_cell(CellJson entries, const std::string& key, const std::string& content) {
  const bool texts = std::ranges::all_of(
      entries, [&](const CellJson& e) { return e.is_object() && e.contains(key) && e[key].is_string(); });
  if (!texts) return entries;
  CellJson map = CellJson::object();
  for (CellJson& e : entries) map[e[key].get<std::string>()] = std::move(e[content]);
  return map;
}

}  // namespace redco
