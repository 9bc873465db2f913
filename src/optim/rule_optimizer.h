// The optimizer of an UpdateRule: state, numbers of updates and parts of parameters as in the others.
//
// Rules on each element get ranges of the parts, and rules on shards the parts as sharded parameters. Other
// rules get whole parameters: if the state is sharded over the replicas, parameters of equal shape are dealt
// to them, one to each. Two all-to-alls per deal move parameter, gradient and state to the replica that
// updates it, and the new values back. So replicas do not repeat each other's work, and a rank needs memory
// for one parameter at a time.
//
// State with a dim of 1 where the parameter has more is replicated along that dim.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "optim/optimizer.h"
#include "optim/update_rule.h"

namespace redco {

struct RuleSettings {
  std::string name;    // of the optimizer, in checkpoints and messages
  std::string origin;  // the plugin's file; "": none
  std::shared_ptr<const UpdateRule> rule;
  double weight_decay = 0.01;
  bool decay_norms_and_biases = false;
};

class RuleOptimizer : public Optimizer {
 public:
  RuleOptimizer(const RuleSettings& settings, const ParamTree& params, StateSharding sharding,
                const std::vector<bool>& members = {});
  std::string name() const override { return settings_.name; }
  void update(ParamTree& params, const std::vector<Tensor>& grads, double learning_rate, double scale,
              const std::vector<bool>& selected = {}) override;
  std::vector<State> state() const override;

 private:
  struct Job {
    Tensor param, gradient;  // this rank's parts
    Tensors state;
    UpdateContext about;
  };
  std::vector<StateSpec> checked_state(const ParamSpec& spec) const;
  // UsageError: update() is declared elementwise, but two halves of a vector give other bits than the
  // whole.
  void check_elementwise(const ParamSpec& spec) const;
  void in_ranges(const Job& job, double scale) const;
  void dealt(const std::vector<Job>& jobs, double scale) const;
  void apply(const Tensor& p, const Tensor& g, const Tensors& state, double scale,
             const UpdateContext& c) const;
  Update call(const Tensor& p, const Tensor& g, const Tensors& state, const UpdateContext& c) const;
  std::string who() const;  // name and shared object
  RuleSettings settings_;
  std::vector<Tensors> of_member_;  // the state of each of members()
  std::vector<State> by_name_;      // the same tensors
};

}  // namespace redco
