// The number of steps of a run.
#pragma once

#include <algorithm>
#include <limits>

#include "data/index/epoch_order.h"
#include "train/train_settings.h"

namespace redco {

inline i64 total_steps(const TrainSettings& t, const StepPlan& plan) {
  const i64 by_epochs =
      t.n_epochs.value_or(t.max_steps ? std::numeric_limits<i64>::max() / plan.steps_per_epoch() : 1) *
      plan.steps_per_epoch();
  return t.max_steps ? std::min(*t.max_steps, by_epochs) : by_epochs;
}

// Without the examples of an epoch, whose number the first source() determines; 0: unknown.
inline i64 total_steps(const TrainSettings& t) { return t.n_epochs ? 0 : t.max_steps.value_or(0); }

}  // namespace redco
