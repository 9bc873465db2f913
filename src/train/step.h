// One optimizer update: everything in training between data and checkpoint. `plan` runs it on meta tensors,
// `bench` on random ones.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "ops/gather_ahead.h"
#include "optim/make_optimizer.h"
#include "optim/master_weights.h"
#include "pipeline/pipeline.h"
#include "shard/parallel_settings.h"
#include "train/train_settings.h"

namespace redco {

struct StepOutcome {
  std::map<std::string, double> terms;    // mean of each loss term over the step's global batch
  double loss = 0;                        // the term of the first group
  double grad_norm = 0;                   // of all groups, before clipping
  double weight = 0;                      // global weight of the first term (tokens, rows)
  std::map<std::string, double> weights;  // global weights of all terms
  bool finite = true;                     // false: nothing was updated
  bool signal = false;                    // a rank received a signal
  std::vector<size_t> unreached;          // first update: trained parameters that no term depends on
  std::string repeated_key;               // first update: where two draws have one key; "": nowhere
};

struct StepOptions {
  std::optional<double> clip_grad_norm;
  bool recompute_blocks = false;
  bool sequence_parallel = false;  // nn/layers.h
  OptimizerSettings optimizer;
  StateSharding sharding = StateSharding::none;
  DType weights = DType::f32;  // of matrices; trained ones have fp32 masters
  // If set, each finite step calls it before the update, with the reduced gradient of each parameter
  // (undefined: it has none in this step).
  std::function<void(const std::vector<Tensor>&)> on_gradients{};
};
StepOptions step_options(const TrainSettings& settings, const ParallelSettings& parallel = {},
                         DType weights = DType::f32);

// Micro-batches of a step: how `rows` examples are distributed to replicas. Rows of micro-batch m: [m * dp *
// per_device, ...), split by the border function, so 3 remaining rows on dp 2 are 2 + 1.
struct MicroBatch {
  i64 first = 0;  // offset in the step's rows
  i64 rows = 0;
};
std::vector<MicroBatch> micro_batches(i64 rows, i64 per_device, int dp);

class TrainStep {
 public:
  // `params`, in fp32, are updated in place; pipeline and params outlive the step. With bf16 weights, rounded
  // ones take the places of trained matrices (optim/master_weights.h). UsageError: the pipeline's groups
  // contradict each other or the parameters.
  TrainStep(Pipeline& pipeline, ParamTree& params, const StepOptions& options);

  // `batches`: collated micro-batches, with their row offsets. `signal`: this rank received a request to
  // stop, which all ranks learn together. UsageError: no term of the first step depends on a parameter.
  // Collective.
  StepOutcome run(const std::vector<Batch>& batches, const std::vector<i64>& row_offsets, i64 step, i64 epoch,
                  double learning_rate, bool signal = false);

  // The optimizer's name; with those of groups that have their own: "adamw, critic: sgd".
  std::string optimizer_name() const;
  // The tensors of all optimizers, joined by name.
  std::vector<Optimizer::State> state() const;
  // The parameters in fp32: what checkpoints store. After it was loaded, loaded() rounds the weights.
  ParamTree masters() const { return masters_.of(params_); }
  void loaded() { masters_.round(params_); }

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
    Optimizer* optimizer = nullptr;
    i64 updates = 0;
    bool due(i64 step) const { return !members.empty() && step % spec.period == 0; }
  };
  static std::vector<Tensor> of_members(const Group& group, const ParamTree& params);
  void make_groups();
  void make_optimizers();
  void follow(const Group& g, double tau);
  std::vector<double> group_norms(const std::vector<Tensor>& grads) const;
  Pipeline& pipeline_;
  ParamTree& params_;
  StepOptions options_;
  MasterWeights masters_;
  GatherAhead gather_ahead_;
  std::vector<Group> groups_;
  std::vector<std::unique_ptr<Optimizer>> optimizers_;  // that of the job, then those of groups
  i64 updates_ = 0;
};

// Means of the terms over micro-batches, reduced once. Without gradients, except those inside loss().
std::map<std::string, double> mean_terms(Pipeline& pipeline, const ParamTree& params,
                                         const std::function<bool(Batch*)>& next);

}  // namespace redco
