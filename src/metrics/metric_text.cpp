#include "metrics/metric_text.h"

#include <array>
#include <utility>

#include "base/words.h"

namespace redco {

namespace {

// A metric, and the one that says the same.
constexpr std::array<std::pair<const char*, const char*>, 3> kSame = {
    {{"f1_micro", "accuracy"}, {"f1_macro", "f1"}, {"mse", "loss"}}};

bool is_repeated(const std::map<std::string, double>& metrics, const std::string& name, double value) {
  for (const auto& [repeated, shown] : kSame)
    if (const auto it = metrics.find(shown); name == repeated && it != metrics.end())
      return human_number(it->second) == human_number(value);
  return false;
}

}  // namespace

std::string metrics_text(const std::map<std::string, double>& metrics, const std::string& separator) {
  std::string out;
  for (const auto& [name, value] : metrics)
    if (!is_repeated(metrics, name, value))
      out += (out.empty() ? "" : separator) + name + " " + human_number(value);
  return out;
}

}  // namespace redco
