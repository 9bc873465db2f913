// Which curves share a chart, and what they are called.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "report/run_state.h"
#include "report/series.h"

namespace redco {

using Curves = std::vector<std::pair<std::string, Series>>;

// A metric of an evaluation: "eval_loss", but not its duration.
bool is_evaluation(const std::string& curve);
// "eval_loss" -> "evaluation loss"
std::string words(std::string curve);
// "runs/a/" -> "runs/a"
std::string without_slash(std::string path);
// The state, shown next to a title.
std::string badge(const RunState& state);

struct Figure {
  std::string title;
  std::vector<std::pair<std::string, std::string>> lines;  // label, curve
};
// The loss first, then the known metrics, then the rest in the order of `curves`. A metric and its evaluation
// share a figure. At most 40.
std::vector<Figure> figures(const Curves& curves);

}  // namespace redco
