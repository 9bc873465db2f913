// The evaluations of a training run: their data, their metrics in the log, their answers in the workdir.
#pragma once

#include <vector>

#include "pipeline/pipeline.h"
#include "train/evaluate.h"
#include "train/event_log.h"
#include "train/trainer.h"

namespace redco {

class RunEvaluations {
 public:
  explicit RunEvaluations(const TrainJob& job) : job_(job) {}

  // Opens the evaluation sets; again after the pipeline's state has changed.
  void open() { sets_ = job_.pipeline->checked_evaluation(); }
  bool empty() const { return sets_.empty(); }
  // Whether an evaluation has a metric or an answer.
  bool have_results() const;

  // little: see evaluate_sets(). Collective.
  Evaluation run(bool little = false) const;
  // Logs the metrics and saves the answers. First rank only.
  void report(const Evaluation& e, i64 step, double epoch, double seconds, MetricsLog& log) const;

 private:
  i64 n_outputs() const { return job_.eval.n_outputs.value_or(0); }
  void keep(const EvalOutputs& outputs, i64 step, MetricsLog& log) const;
  const TrainJob& job_;
  std::vector<EvalSet> sets_;
};

}  // namespace redco
