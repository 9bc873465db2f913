#include "metrics/text_metrics.h"

#include <algorithm>

#include "base/registry.h"
#include "base/user_code.h"

namespace redco {

namespace {

Registry<PluginMetric>& metrics() {
  static auto& known = *new Registry<PluginMetric>("metric");
  return known;
}

bool is_built_in(const std::string& name) {
  const auto in = [&](const MetricFamilies& families) {
    return std::ranges::any_of(families, [&](const auto& family) {
      return family.first == name || std::ranges::find(family.second, name) != family.second.end();
    });
  };
  return name == "loss" || in(built_in_text_metrics()) || in(speech_metrics());
}

}  // namespace

const MetricFamilies& built_in_text_metrics() {
  static const MetricFamilies kFamilies = {{"rouge", {"rouge1", "rouge2", "rougeL", "rougeLsum"}},
                                           {"bleu", {"bleu"}},
                                           {"chrf", {"chrf"}},
                                           {"exact_match", {"exact_match"}}};
  return kFamilies;
}

const MetricFamilies& speech_metrics() {
  static const MetricFamilies kFamilies = {
      {"wer", {"wer"}}, {"cer", {"cer"}}, {"exact_match", {"exact_match"}}};
  return kFamilies;
}

double PluginMetric::of(const std::vector<std::string>& predictions,
                        const std::vector<std::vector<std::string>>& references) const {
  try {
    return score(predictions, references);
  } catch (...) {
    rethrow_from_user(
        [&](const std::string& why) { return fmt::format("[metrics] {} ({}) failed{}", name, origin, why); });
  }
}

void add_metric(const PluginMetric& metric) {
  metrics().add(metric, fmt::format("REDCO_METRIC(\"{}\")", metric.name), is_built_in(metric.name));
}

std::vector<PluginMetric> plugin_metrics() { return metrics().all(); }

}  // namespace redco
