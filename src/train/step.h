// One optimizer update: the whole of training between data and checkpoint. `plan` runs it on meta tensors, `bench` on random ones.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "optim/adamw.h"
#include "train/pipeline.h"

namespace redco {

// What the ranks tell one another before an update; all act on the sum.
struct Vote {
  bool signal = false, io_error = false;
};

struct StepOutcome {
  std::map<std::string, double> terms;  // mean of each loss term over the step's global batch
  double loss = 0;                      // the first group's term
  double grad_norm = 0;                 // of all groups, before clipping
  double weight = 0;                    // global weight of the first term (tokens, rows)
  bool finite = true;                   // else nothing was updated
  bool signal = false, io_error = false;  // some rank's vote
};

struct StepOptions {
  std::optional<double> clip_grad_norm;
  bool recompute_blocks = false;
  AdamWSettings adamw;
};

// Micro-batches of a step: how `rows` examples are dealt to replicas. Rows of micro-batch m: [m * dp * per_device, ...), split by
// the border function, so a tail of 3 on dp 2 is 2 + 1.
struct MicroBatch {
  i64 first = 0;  // position in the step's rows
  i64 rows = 0;
};
std::vector<MicroBatch> micro_batches(i64 rows, i64 per_device, int dp);

class TrainStep {
 public:
  // `params` are updated in place; both outlive the step.
  TrainStep(Pipeline& pipeline, ParamTree& params, const StepOptions& options);

  // `batches`: collated micro-batches with their row offsets. Collective.
  StepOutcome run(const std::vector<Batch>& batches, const std::vector<i64>& row_offsets, i64 step, i64 epoch,
                  double learning_rate, const Vote& vote);

  // Means of the terms over micro-batches, no gradients; reduced once.
  std::map<std::string, double> evaluate(const std::function<bool(Batch*)>& next);

  AdamW& optimizer() { return optimizer_; }

 private:
  struct Group {
    ParamGroup spec;
    std::vector<size_t> members;
    std::vector<bool> selected;
  };
  Pipeline& pipeline_;
  ParamTree& params_;
  StepOptions options_;
  AdamW optimizer_;
  std::vector<Group> groups_;
};

}  // namespace redco
