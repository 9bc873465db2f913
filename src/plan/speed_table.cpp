#include "plan/speed_table.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace redco {

double SpeedTable::operator()(std::span<const double> at) const {
  REDCO_CHECK(at.size() == axes.size(), "{} sizes for a table with {} axes", at.size(), axes.size());
  // The corner below `at`, and how far `at` is on the way to the next one.
  std::vector<std::size_t> below;
  std::vector<double> share;
  for (std::size_t d = 0; d < axes.size(); ++d) {
    const std::vector<double>& axis = axes[d];
    const double x = std::clamp(at[d], axis.front(), axis.back());
    const auto next = std::upper_bound(axis.begin(), axis.end(), x);
    const std::size_t i = std::min(static_cast<std::size_t>(next - axis.begin()), axis.size() - 1);
    below.push_back(i == 0 ? 0 : i - 1);
    share.push_back(
        axis.size() == 1 ? 0 : std::log(x / axis[below[d]]) / std::log(axis[below[d] + 1] / axis[below[d]]));
  }
  double sum = 0;
  for (std::size_t corner = 0; corner < (std::size_t{1} << axes.size()); ++corner) {
    double weight = 1;
    std::size_t index = 0;
    for (std::size_t d = 0; d < axes.size(); ++d) {
      const bool up = (corner >> d & 1) != 0;
      weight *= up ? share[d] : 1 - share[d];
      index = index * axes[d].size() + std::min(below[d] + (up ? 1 : 0), axes[d].size() - 1);
    }
    if (weight > 0) sum += weight * std::log(values[index]);
  }
  return std::exp(sum);
}

std::string SpeedTable::problem() const {
  std::size_t n = 1;
  for (const std::vector<double>& axis : axes) {
    if (axis.empty()) return "an axis without sizes";
    for (std::size_t i = 0; i < axis.size(); ++i)
      if (!std::isfinite(axis[i]) || axis[i] <= (i == 0 ? 0 : axis[i - 1])) return "sizes that do not ascend";
    n *= axis.size();
  }
  if (axes.size() > 8) return fmt::format("{} axes", axes.size());
  if (values.size() != n) return fmt::format("{} values for {} points", values.size(), n);
  for (const double v : values)
    if (!std::isfinite(v) || v <= 0) return fmt::format("the value {}", v);
  return "";
}

}  // namespace redco
