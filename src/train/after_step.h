// What Pipeline::after_step() reports of the last update, on its way to the logs.
#pragma once

#include "pipeline/pipeline.h"
#include "train/event_log.h"
#include "train/step.h"

namespace redco {

class AfterStep {
 public:
  // Calls after_step() for an update that was made.
  void call(Pipeline& pipeline, const ParamTree& params, const StepOutcome& outcome, const StepContext& ctx);
  // The pipeline's notes() and the values of the last update. UsageError: both have a value of one name.
  std::map<std::string, double> values(const Pipeline& pipeline) const;
  void write_histograms(MetricsLog& log, i64 step) const;

 private:
  StepLog last_;
};

}  // namespace redco
