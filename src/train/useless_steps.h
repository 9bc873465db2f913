// Steps of a run from which nothing was learned: those whose loss or gradient was not finite, and those whose
// loss has the weight 0. A run that has no other steps ends with an error.
#pragma once

#include <string>

#include "nn/param_tree.h"
#include "train/step.h"
#include "train/train_settings.h"

namespace redco {

class UselessSteps {
 public:
  // Counts a step. Error of code non_finite: the step was not finite and train.on_non_finite is stop, or the
  // parameters were not finite before the first update, so that no step can be. Warns of a skipped step on
  // the first rank. Collective.
  void add(const StepOutcome& o, i64 step, OnNonFinite on_non_finite, const ParamTree& params);
  // After the last step. Error: all steps of this run were skipped, or had the weight 0. Warns on the first
  // rank if some were skipped. Collective.
  void finish(const ParamTree& params) const;

 private:
  std::string remedy(const ParamTree& params) const;
  bool updated() const { return skipped_ < steps_; }
  i64 steps_ = 0, skipped_ = 0, without_weight_ = 0;
};

// The first parameter with a value that is not finite, by the order of the tree; "": all are finite.
// Collective.
std::string non_finite_parameter(const ParamTree& params);

}  // namespace redco
