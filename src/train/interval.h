// The steps since the last line of metrics.jsonl: sums on the way, one line's values at its end.
#pragma once

#include <map>
#include <string>

#include "base/progress.h"
#include "train/event_log.h"
#include "train/step.h"

namespace redco {

class Interval {
 public:
  // peak: this rank's peak matmul speed, FLOP/s; 0 if it is unknown. A step that is faster than the measured
  // peak counts as 100 %. unit: what the first term's weight counts.
  explicit Interval(double peak, std::string unit = "tokens")
      : peak_(peak), begin_(seconds()), unit_(std::move(unit)) {}

  // A step was made: at this learning rate, with so many FLOPs on this rank.
  void add(const StepOutcome& step, double learning_rate, i64 flops);
  // Time that was no step: it counts for no speed.
  void pause(double seconds) { begin_ += seconds; }

  // What metrics.jsonl says of the interval, which ends here; the next one begins. REQUIRES: a step was made.
  // `notes`: what the pipeline says beside.
  Values close(double epoch, const std::map<std::string, double>& notes = {});
  // The same for people, of the interval so far, or of the one just closed.
  Progress::Fields fields(double epoch, const std::map<std::string, double>& notes = {}) const;

 private:
  struct Sums {
    i64 steps = 0, finite = 0, flops = 0;
    double loss = 0, weight = 0;
    std::map<std::string, double> terms;
    double time = 0;  // once closed
  };
  double mean_loss(const Sums& s) const;
  double peak_share(const Sums& s, double time) const;

  double peak_, begin_;
  std::string unit_;
  Sums now_, closed_;
  StepOutcome last_;
  double learning_rate_ = 0;
  i64 skipped_ = 0;  // in all
};

}  // namespace redco
