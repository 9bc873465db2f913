// What is done with an evaluation's metrics: the best so far are remembered (checkpoint.save_best_by), and
// training ends when one of them gets no better (train.early_stopping). What it remembers is in TrainState,
// so that a resumed run is the run that never stopped.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "train/checkpoint.h"
#include "train/train_settings.h"

namespace redco {

using Metrics = std::map<std::string, double>;

// Whether more of this is better, by what the metric is called: accuracy, bleu, f1, rougeL ... are; loss,
// perplexity, wer, mse ... are not. Parts of a name count, as in loss_actor, eval_accuracy or rouge2_f1; none
// where the name doesn't tell.
std::optional<bool> more_is_better(const std::string& metric);

class MetricWatch {
 public:
  // UsageError: the early-stopping metric's nature is unknown and no mode is given.
  MetricWatch(const SaveBestSettings& best, const EarlyStoppingSettings& early);

  bool watches_any() const { return !sides_.empty() || early_.metric; }
  // UsageError naming those there are, where a watched metric isn't among an evaluation's.
  void check(const Metrics& metrics) const;

  // Takes an evaluation made after state.step. Returns the metrics that were never better: their checkpoint
  // is to be kept. `periodic`: a further run of this job makes this evaluation, too; an extra one, at the end
  // of a part, doesn't count for early stopping.
  std::vector<std::string> see(const Metrics& metrics, bool periodic, TrainState& state) const;

  // Whether training is to end: patience is used up.
  bool exhausted(const TrainState& state) const;
  // "loss has not fallen for 3 evaluations; its best was 1.2345 after step 40". REQUIRES: exhausted().
  std::string why(const TrainState& state) const;

 private:
  std::map<std::string, bool> sides_;  // save_best_by: metric -> more is better
  EarlyStoppingSettings early_;
  bool more_ = false;  // of the early-stopping metric
};

}  // namespace redco
