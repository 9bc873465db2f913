// Metrics of generated texts by name: redco's (metrics/rouge.h and others) and those of users' shared
// objects (pipeline/plugin.h).
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace redco {

// Names for eval.metrics, each with the metrics that it selects.
using MetricFamilies = std::vector<std::pair<std::string, std::vector<std::string>>>;

// Those of redco.
const MetricFamilies& built_in_text_metrics();
// Those of redco for the texts of recordings (metrics/word_errors.h).
const MetricFamilies& speech_metrics();

// references[i], one or more, belong to predictions[i].
using TextMetric = double (*)(const std::vector<std::string>& predictions,
                              const std::vector<std::vector<std::string>>& references);

struct PluginMetric {
  std::string name;
  TextMetric score = nullptr;
  std::string origin;  // the shared object

  // Calls `score`. Errors, with name and shared object, are those of rethrow_from_user() (base/user_code.h).
  double of(const std::vector<std::string>& predictions,
            const std::vector<std::vector<std::string>>& references) const;
};

// Makes the metric known for the rest of the process. UsageError: the name is taken or empty.
void add_metric(const PluginMetric& metric);
std::vector<PluginMetric> plugin_metrics();

}  // namespace redco
