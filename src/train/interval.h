// The steps since the last line of metrics.jsonl: running sums, and the line's values at the end.
#pragma once

#include <map>
#include <string>

#include "base/progress.h"
#include "train/event_log.h"
#include "train/step.h"

namespace redco {

class Interval {
 public:
  // peak: this rank's peak matmul speed in FLOP/s; 0 if unknown. A step that is faster than the measured
  // peak counts as 100 %. unit: the unit of the first term's weight.
  explicit Interval(double peak, std::string unit = "tokens")
      : peak_(peak), begin_(seconds()), unit_(std::move(unit)) {}

  // Adds a step, its learning rate, this rank's FLOPs, and the seconds that it waited for other ranks.
  void add(const StepOutcome& step, double learning_rate, i64 flops, double waiting);
  // Excludes time without training steps from the speed.
  void pause(double seconds) { begin_ += seconds; }

  // The values of this interval's line of metrics.jsonl; a new interval begins. REQUIRES: at least one step.
  // `notes`: the pipeline's own values.
  Values close(double epoch, const std::map<std::string, double>& notes = {});
  // The same values for the terminal: of the current interval, or of the last one if the current is empty.
  Progress::Fields fields(double epoch, const std::map<std::string, double>& notes = {}) const;

 private:
  struct Sums {
    i64 steps = 0, finite = 0, flops = 0;
    double loss = 0, weight = 0, waiting = 0;
    std::map<std::string, double> terms;
    double time = 0;  // set by close()
  };
  double mean_loss(const Sums& s) const;
  double peak_share(const Sums& s, double time) const;

  double peak_, begin_;
  std::string unit_;
  Sums now_, closed_;
  StepOutcome last_;
  double learning_rate_ = 0;
  i64 skipped_ = 0;  // since the start of the run
};

}  // namespace redco
