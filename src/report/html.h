// Pieces of HTML. Whatever comes out of a file goes through escape().
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "report/series.h"

namespace redco {

// Text for an element or a quoted attribute: markup is escaped, bytes that are no UTF-8 and control
// characters are shown as U+FFFD.
std::string escape(std::string_view text);

// "0.25", "1.5 k", "3e-05": a number on an axis or in a table.
std::string short_number(double v);

struct ChartLine {
  std::string label;
  const Series* series;
};
// A figure with its title, legend and an inline SVG: lines over steps; where points were merged, a band from
// the least to the greatest. Its points follow as JSON, for the page's script. REQUIRES: lines with points.
std::string chart(const std::string& title, const std::vector<ChartLine>& lines);

}  // namespace redco
