// Watches the metrics of evaluations: remembers the best values (checkpoint.save_best_by) and ends training
// when a metric stops improving (train.early_stopping). Its memory is in TrainState, so a resumed run equals
// the uninterrupted run.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "metrics/metric_direction.h"
#include "train/checkpoint.h"
#include "train/train_settings.h"

namespace redco {

using Metrics = std::map<std::string, double>;

class MetricWatch {
 public:
  // UsageError: no mode is given, and the name of the early-stopping metric doesn't tell the direction.
  MetricWatch(const SaveBestSettings& best, const EarlyStoppingSettings& early);

  bool watches_any() const { return !sides_.empty() || early_.metric; }
  // UsageError if an evaluation lacks a watched metric; the message lists its metrics.
  void check(const Metrics& metrics) const;

  // Takes the metrics of an evaluation after state.step. Returns the metrics with a new best value: their
  // checkpoint must be kept. `periodic`: an uninterrupted run makes this evaluation too. Other evaluations,
  // at the end of a part, don't count for early stopping.
  std::vector<std::string> see(const Metrics& metrics, bool periodic, TrainState& state) const;

  // Whether training must end: the patience is exhausted.
  bool exhausted(const TrainState& state) const;
  // "loss has not fallen for 3 evaluations; its best was 1.2345 after step 40". REQUIRES: exhausted().
  std::string why(const TrainState& state) const;

 private:
  std::map<std::string, bool> sides_;  // save_best_by: metric -> larger is better
  EarlyStoppingSettings early_;
  bool more_ = false;  // of the early-stopping metric
};

}  // namespace redco
