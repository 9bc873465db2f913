// One optimizer update: everything in training between data and checkpoint. `plan` runs it on meta tensors,
// `bench` on random ones.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "optim/adamw.h"
#include "optim/sgd.h"
#include "shard/parallel_settings.h"
#include "train/pipeline.h"

namespace redco {

struct StepOutcome {
  std::map<std::string, double> terms;  // mean of each loss term over the step's global batch
  double loss = 0;                      // the term of the first group
  double grad_norm = 0;                 // of all groups, before clipping
  double weight = 0;                    // global weight of the first term (tokens, rows)
  bool finite = true;                   // false: nothing was updated
  bool signal = false;                  // a rank received a signal
};

struct StepOptions {
  std::optional<double> clip_grad_norm;
  bool recompute_blocks = false;
  bool sequence_parallel = false;  // nn/layers.h
  AdamWSettings adamw;
  std::optional<SgdSettings> sgd;  // replaces AdamW
  StateSharding sharding = StateSharding::none;
  // Optimizer state per trained parameter, in numbers.
  i64 states() const { return sgd ? (sgd->momentum > 0 ? 1 : 0) : 2; }
};
StepOptions step_options(const TrainSettings& settings, const ParallelSettings& parallel = {});

// Micro-batches of a step: how `rows` examples are distributed to replicas. Rows of micro-batch m: [m * dp *
// per_device, ...), split by the border function, so 3 remaining rows on dp 2 are 2 + 1.
struct MicroBatch {
  i64 first = 0;  // offset in the step's rows
  i64 rows = 0;
};
std::vector<MicroBatch> micro_batches(i64 rows, i64 per_device, int dp);

class TrainStep {
 public:
  // `params` are updated in place; pipeline and params outlive the step. UsageError: the pipeline's groups
  // contradict each other or the parameters.
  TrainStep(Pipeline& pipeline, ParamTree& params, const StepOptions& options);

  // `batches`: collated micro-batches, with their row offsets. `signal`: this rank received a request to
  // stop, which all ranks learn together. Collective.
  StepOutcome run(const std::vector<Batch>& batches, const std::vector<i64>& row_offsets, i64 step, i64 epoch,
                  double learning_rate, bool signal = false);

  Optimizer& optimizer() { return *optimizer_; }

  // Sets moving averages to copies of their sources: once, at the start of a run that isn't resumed.
  void start_averages();

  // Number of updates, in total and per group (fewer if its period is above 1). Moving averages have none.
  i64 updates() const { return updates_; }
  std::map<std::string, i64> group_updates() const;
  // Sets them from a checkpoint. ContentsError: the groups differ from the pipeline's.
  void set_updates(i64 updates, const std::map<std::string, i64>& of_groups);

 private:
  struct Group {
    ParamGroup spec;
    std::vector<size_t> members;
    std::vector<bool> selected;
    i64 updates = 0;
    bool due(i64 step) const { return !members.empty() && step % spec.period == 0; }
  };
  void follow(const Group& g, double tau);
  std::vector<double> group_norms(const std::vector<Tensor>& grads) const;
  Pipeline& pipeline_;
  ParamTree& params_;
  StepOptions options_;
  std::unique_ptr<Optimizer> optimizer_;
  std::vector<Group> groups_;
  i64 updates_ = 0;
};

// Means of the terms over micro-batches, reduced once. Without gradients, except those inside loss().
std::map<std::string, double> mean_terms(Pipeline& pipeline, const ParamTree& params,
                                         const std::function<bool(Batch*)>& next);

}  // namespace redco
