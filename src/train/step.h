// One optimizer update: everything in training between data and checkpoint. `plan` runs it on meta tensors,
// `bench` on random ones.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "ops/gather_ahead.h"
#include "pipeline/pipeline.h"
#include "train/micro_batches.h"
#include "train/step_options.h"
#include "train/update_groups.h"

namespace redco {

struct StepOutcome {
  std::map<std::string, double> terms;    // mean of each loss term over the step's global batch
  std::string first_term;                 // the name of the term that the first group minimizes
  double loss = 0;                        // its mean
  double grad_norm = 0;                   // of all groups, before clipping
  double weight = 0;                      // global weight of the first term (tokens, rows)
  std::map<std::string, double> weights;  // global weights of all terms
  bool finite = true;                     // false: nothing was updated
  bool signal = false;                    // a rank received a signal
  bool save_due = false;                  // the first rank asked for a save
  std::vector<size_t> unreached;          // first update: trained parameters that no term depends on
  std::string repeated_key;               // first update: where two draws have one key; "": nowhere
};

class TrainStep {
 public:
  // `params`, in fp32, are updated in place; pipeline and params outlive the step. With bf16 weights, rounded
  // ones take the places of trained matrices (optim/master_weights.h). UsageError: the pipeline's groups
  // contradict each other or the parameters.
  TrainStep(Pipeline& pipeline, ParamTree& params, const StepOptions& options);

  // `batches`: collated micro-batches, with their row offsets. `signal`: this rank received a request to
  // stop, `save_due`: the first rank asks for a save; all ranks learn both together. UsageError: no term of
  // the first step depends on a parameter. Collective.
  StepOutcome run(const std::vector<Batch>& batches, const std::vector<i64>& row_offsets, i64 step, i64 epoch,
                  double learning_rate, bool signal = false, bool save_due = false);

  // The optimizer's name; with those of groups that have their own: "adamw, critic: sgd".
  std::string optimizer_name() const { return groups_.optimizer_name(); }
  // The tensors of all optimizers, joined by name.
  std::vector<Optimizer::State> state() const { return groups_.state(); }
  // The parameters in fp32: what checkpoints store. After it was loaded, loaded() rounds the weights.
  ParamTree masters() const { return groups_.masters(); }
  void loaded() { groups_.loaded(); }

  // Sets moving averages to copies of their sources: once, at the start of a run that isn't resumed.
  void start_averages() { groups_.start_averages(); }

  // For StepContext::total_steps; before, it is 1.
  void set_total_steps(i64 n) { total_steps_ = n; }

  // Number of updates, in total and per group (fewer if its period is above 1). Moving averages have none.
  i64 updates() const { return groups_.updates(); }
  std::map<std::string, i64> group_updates() const { return groups_.group_updates(); }
  // Sets them from a checkpoint. ContentsError: the groups differ from the pipeline's.
  void set_updates(i64 updates, const std::map<std::string, i64>& of_groups) {
    groups_.set_updates(updates, of_groups);
  }

 private:
  struct Pass;
  void run_micro_batch(Pass& pass, size_t m);
  LossTerms forward(Pass& pass, size_t m, const ParamTree& params);
  void count(Pass& pass, const LossTerms& terms, bool last) const;
  void backward(Pass& pass, bool last, const ParamTree& params, const LossTerms& terms);
  void repeat_embeddings(Pass& pass);
  void check_first(const Pass& pass, const std::vector<Tensor>& grads, StepOutcome& out) const;
  void vote(const Pass& pass, bool signal, bool save_due, StepOutcome& out) const;
  bool is_first() const { return groups_.updates() == 0; }
  Pipeline& pipeline_;
  ParamTree& params_;
  StepOptions options_;
  i64 total_steps_ = 1;
  UpdateGroups groups_;
  GatherAhead gather_ahead_;
};

}  // namespace redco
