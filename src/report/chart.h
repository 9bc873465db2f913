// Charts as inline SVG.
#pragma once

#include <string>
#include <vector>

#include "report/series.h"

namespace redco {

struct ChartLine {
  std::string label;
  const Series* series;
  std::size_t color = 0;  // of kChartColors; the dashes distinguish lines of the same color
  bool points = false;    // each point is marked, as of evaluations
};
constexpr std::size_t kChartColors = 8, kChartDashes = 3;
// The classes of a line or its key: "k1 d0".
std::string chart_class(std::size_t color);

// Whether the lines have two different steps. Otherwise there are numbers to show, and no curve.
bool is_chart(const std::vector<ChartLine>& lines);

struct ChartText {
  std::string title;
  bool legend = true;           // of more than one line
  std::vector<double> resumes;  // steps, marked by vertical lines
};
// A figure: title, legend, SVG of the lines over steps, a band from least to greatest where points were
// merged, and the points as JSON for the page's script. REQUIRES: is_chart(lines), each line with points.
std::string chart(const ChartText& text, const std::vector<ChartLine>& lines);

}  // namespace redco
