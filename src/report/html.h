// Pieces of HTML. All text from files goes through escape().
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "report/series.h"

namespace redco {

// Text for an element or a quoted attribute: escapes markup; control characters and bytes that are not UTF-8
// become U+FFFD.
std::string escape(std::string_view text);

// "0.25", "1.5 k", "3e-05": a number on an axis or in a table.
std::string short_number(double v);

struct ChartLine {
  std::string label;
  const Series* series;
};
// A figure with title, legend and an inline SVG: lines over steps, with a band from minimum to maximum where
// points were merged. The points follow as JSON for the page's script. REQUIRES: lines with points.
std::string chart(const std::string& title, const std::vector<ChartLine>& lines);

}  // namespace redco
