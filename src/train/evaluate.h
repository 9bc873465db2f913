// Evaluation: exact metrics over a whole data set, the same on every rank.
#pragma once

#include <map>
#include <string>

#include "pipeline/pipeline.h"
#include "train/eval_outputs.h"

namespace redco {

// Exact metrics over all of `data`: no row is dropped or counted twice. Random draws are those of step 0.
// Empty if the pipeline evaluates no loss. Throws Error(interrupted) on all ranks after a request to end.
std::map<std::string, double> evaluate(Pipeline& pipeline, const ParamTree& params,
                                       const std::shared_ptr<const Dataset>& data, i64 per_device_batch_size,
                                       i64 max_batches = -1);

struct Evaluation {
  std::map<std::string, double> metrics;  // "loss"; of a set with a name "NAME_loss"
  std::vector<EvalOutputs> outputs;       // of each set
};
// Evaluates all sets. Includes metrics of the pipeline's answers, if it measures them or n_outputs of them
// are to be kept. little: uses as few examples as possible, to test that evaluation works.
Evaluation evaluate_sets(Pipeline& pipeline, const ParamTree& params, const std::vector<EvalSet>& sets,
                         i64 per_device_batch_size, i64 n_outputs, bool little = false);

}  // namespace redco
