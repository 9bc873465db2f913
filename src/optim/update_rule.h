// UpdateRule: an optimizer as one function, written with ops for one device. redco calls it for each
// parameter and keeps its state.
//
// All tensors that it gets are fp32 global values of the parameter's shape (ops/dispatch.h): a rank holds its
// part of them. Ops on each element (Lion) communicate nothing, and their results are the same bits for any
// sharding of the state. Ops along a dim (Adafactor), and products of matrices (Muon), may communicate. A
// rule needs no code for sharded state (ZeRO): elementwise() and on_shards() decide what it gets of a
// parameter (optim/rule_optimizer.h). `redco plan` counts the communication and the memory.
//
// A rule of a plugin is exported by REDCO_OPTIMIZER("name", Class) (pipeline/plugin.h), or is a Python class
// (docs/python.md), and `train.optimizer: name` selects it. A pipeline may give one to a parameter group
// (RuleSettings in optim/make_optimizer.h).
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "nn/param_tree.h"

namespace redco {

// About the parameter that is updated.
struct UpdateContext {
  const ParamSpec& spec;
  i64 updates = 1;           // of this parameter, this one included
  double learning_rate = 0;  // of this step and parameter group
  double weight_decay = 0;   // train.weight_decay; 0 for norms and biases unless train.decay_norms_and_biases
};

// A tensor of the state of one parameter.
struct StateSpec {
  std::string name;
  Shape shape;
};

// The new values. `state` has as many entries as UpdateRule::state_of().
struct Update {
  Tensor param;
  Tensors state{};
};

class UpdateRule {
 public:
  virtual ~UpdateRule() = default;
  // True: each element is updated separately, without random numbers. Then update() gets ranges of this
  // rank's part of a parameter as vectors, of at most kMostElements, so temporary values stay in the caches
  // and need little memory; `context.spec` is still the whole parameter's. The results are the same.
  virtual bool elementwise() const { return false; }
  static constexpr i64 kMostElements = 1 << 17;
  // True: ops on each element and reductions along dims (norms, means), no products of matrices. With sharded
  // state update() then gets the parameter sharded over the replicas, each with its rows. Reductions add up
  // over the replicas, so their results differ by rounding. False: whole parameters, each on one replica.
  virtual bool on_shards() const { return false; }
  // Names of the state ("exp_avg"): one tensor of the parameter's shape each, zeros at first. Checkpoints
  // store it under these names, so they contain no slash, differ, and none is "master".
  virtual std::vector<std::string> state() const { return {}; }
  // The state of one parameter, for rules whose state depends on the parameter or has other shapes: dims are
  // those of the parameter, or 1 (a mean along the dim). The default: state().
  virtual std::vector<StateSpec> state_of(const ParamSpec& spec) const;
  // The parameter and its state after one update. `gradient` is clipped already. A result may be one of the
  // arguments, such as the old parameter as state. Called without a tape.
  virtual Update update(const Tensor& param, const Tensor& gradient, const Tensors& state,
                        const UpdateContext& context) const = 0;
};

// An optimizer of a plugin.
struct PluginOptimizer {
  std::string name;
  std::function<std::unique_ptr<UpdateRule>(const std::string& settings)> make;  // from a JSON object
  std::string origin;                                                            // the plugin's file
};
// Makes the optimizer known for the rest of the process. UsageError: the name is taken.
void add_optimizer(const PluginOptimizer& optimizer);
// Null: no plugin has it. Valid for the rest of the process.
const PluginOptimizer* plugin_optimizer(const std::string& name);
// adamw, sgd, muon, adafactor, and those of plugins.
std::vector<std::string> optimizer_names();

}  // namespace redco
