#include "metrics/text_metrics.h"

#include <algorithm>
#include <mutex>
#include <new>

#include "base/error.h"

namespace redco {

namespace {

// Ranks may be threads of one process.
struct Metrics {
  std::mutex mutex;
  std::vector<PluginMetric> all;
};
Metrics& metrics() {
  static auto& known = *new Metrics;
  return known;
}

bool is_built_in(const std::string& name) {
  return name == "loss" || std::ranges::any_of(built_in_text_metrics(), [&](const auto& family) {
           return family.first == name || std::ranges::find(family.second, name) != family.second.end();
         });
}

}  // namespace

const MetricFamilies& built_in_text_metrics() {
  static const MetricFamilies kFamilies = {{"rouge", {"rouge1", "rouge2", "rougeL", "rougeLsum"}},
                                           {"bleu", {"bleu"}},
                                           {"chrf", {"chrf"}},
                                           {"exact_match", {"exact_match"}}};
  return kFamilies;
}

double PluginMetric::of(const std::vector<std::string>& predictions,
                        const std::vector<std::vector<std::string>>& references) const {
  const auto fail = [&](const std::string& why) {
    throw UsageError("[metrics] {} ({}) failed: {}", name, origin, why);
  };
  try {
    return score(predictions, references);
  } catch (const BugError& e) {
    fail(e.found());
  } catch (const Error&) {
    throw;
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& e) {
    fail(e.what());
  }
  return 0;
}

void add_metric(const PluginMetric& metric) {
  const auto refuse = [&](const std::string& why) {
    throw UsageError("[plugins] {}: REDCO_METRIC(\"{}\"): {}. Use another name", metric.origin, metric.name,
                     why);
  };
  if (metric.name.empty()) refuse("the name is empty");
  if (is_built_in(metric.name)) refuse("this metric is built in");
  Metrics& known = metrics();
  const std::lock_guard lock(known.mutex);
  for (const PluginMetric& other : known.all)
    if (other.name == metric.name) refuse(other.origin + " has a metric of this name");
  known.all.push_back(metric);
}

std::vector<PluginMetric> plugin_metrics() {
  Metrics& known = metrics();
  const std::lock_guard lock(known.mutex);
  return known.all;
}

}  // namespace redco
