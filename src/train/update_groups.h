// The parameter groups of a pipeline (Pipeline::groups()) with their optimizers: what is updated in a step,
// how, and by which gradients.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "optim/make_optimizer.h"
#include "optim/master_weights.h"
#include "pipeline/pipeline.h"
#include "train/step_options.h"

namespace redco {

class UpdateGroups {
 public:
  struct Group {
    ParamGroup spec;
    std::vector<size_t> members;
    std::vector<bool> selected;
    Optimizer* optimizer = nullptr;
    i64 updates = 0;
    bool due(i64 step) const { return !members.empty() && step % spec.period == 0; }
    // Whether the step minimizes its term. A moving average follows others instead.
    bool descends(i64 step) const { return !spec.ema_of && due(step); }
    std::vector<Tensor> of(const ParamTree& params) const;  // its members
  };

  // `params` are updated in place; with bf16 weights, rounded ones take the places of trained matrices.
  // pipeline and params outlive the groups. UsageError: the groups contradict each other or the parameters.
  UpdateGroups(Pipeline& pipeline, ParamTree& params, const StepOptions& options);

  const std::vector<Group>& all() const { return groups_; }

  // First the norm of all groups that are clipped together, then that of each group (0: it has no norm of its
  // own). Collective.
  std::vector<double> norms(const std::vector<Tensor>& grads) const;
  // One update of each group that is due in ctx.step, then Pipeline::after_update(). norms: those of `grads`.
  void update(const std::vector<Tensor>& grads, const std::vector<double>& norms, const StepContext& ctx,
              double learning_rate);

  // The same as in TrainStep.
  std::string optimizer_name() const;
  std::vector<Optimizer::State> state() const;
  ParamTree masters() const { return masters_.of(params_); }
  void loaded() { masters_.round(params_); }
  void start_averages();
  i64 updates() const { return updates_; }
  std::map<std::string, i64> group_updates() const;
  void set_updates(i64 updates, const std::map<std::string, i64>& of_groups);

 private:
  void make_groups(const Pipeline& pipeline);
  void check_averages() const;
  void make_optimizers(const StepOptions& options);
  void follow(const Group& g, double tau);
  void take_new_values(const StepContext& ctx);
  Pipeline& pipeline_;
  ParamTree& params_;
  StateSharding sharding_;
  std::optional<double> clip_grad_norm_;
  MasterWeights masters_;
  std::vector<Group> groups_;
  std::vector<std::unique_ptr<Optimizer>> optimizers_;  // that of the job, then those of groups
  i64 updates_ = 0;
};

}  // namespace redco
