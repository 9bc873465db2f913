// Optimizer: updates trained parameters, which are fp32, from their gradients. The common part: the
// parameters to update, state for checkpoints, and numbers of updates.
#pragma once

#include <string>
#include <vector>

#include "nn/param_tree.h"
#include "ops/redistribute.h"

namespace redco {

class Optimizer {
 public:
  virtual ~Optimizer() = default;

  // "adamw", "sgd", "sgd with momentum". Optimizers of equal name can load each other's state.
  virtual std::string name() const = 0;

  // One in-place update of the trained parameters with selected[i] (all if empty). grads[i] belongs to
  // parameter i. Gradients are multiplied by `scale` (clipping). With sharded state, grads[i] has the
  // placement of the state: each rank updates its part, and parameters that are not sharded themselves are
  // gathered.
  virtual void update(ParamTree& params, const std::vector<Tensor>& grads, double learning_rate, double scale,
                      const std::vector<bool>& selected = {}) = 0;

  // The optimizer's tensors by their PyTorch names: fp32 trees of its parameters with the same placements, or
  // sharded over the replicas too.
  struct State {
    std::string name;  // exp_avg, momentum_buffer
    ParamTree tree;
  };
  virtual std::vector<State> state() const = 0;

  // Number of updates of each parameter (PyTorch's `step`). It is part of the state, because parameters may
  // be updated at different times.
  std::vector<i64>& updates() { return updates_; }

 protected:
  // members[i]: parameter i may be updated; empty: all trained ones.
  Optimizer(const ParamTree& params, StateSharding sharding, const std::vector<bool>& members);
  ParamTree zeros(const ParamTree& params) const;  // of its parameters
  // Common part of update() for each selected parameter: checks the gradient, adds `flops_each` to the ledger
  // under `what`, counts the update, and calls f(k, i, p) with this rank's part p of parameter i, which is
  // its k-th one.
  template <class F>
  void each(const char* what, i64 flops_each, ParamTree& params, const std::vector<Tensor>& grads,
            const std::vector<bool>& selected, const F& f) {
    std::vector<RowParts> updated;
    for (size_t k = 0; k < members_.size(); ++k) {
      const size_t i = members_[k];
      if (!selected.empty() && !selected[i]) continue;
      ++updates_[i];
      f(k, i, part(what, flops_each, params, grads, i));
      updated.push_back({params.values()[i], grads[i].layout()});
    }
    const Scope scope("parameters");
    gather_rows_in_place(updated);
  }

  std::vector<size_t> members_;  // its parameters: their indices among all

 private:
  View part(const char* what, i64 flops_each, const ParamTree& params, const std::vector<Tensor>& grads,
            size_t i) const;
  StateSharding sharding_;
  std::vector<i64> updates_;
};

// The placement of the state, and of the reduced gradient, that belong to a parameter.
Layout state_layout(const Tensor& param, StateSharding sharding);

// The weight decay of a parameter: 0 for norms and biases unless norms_and_biases.
double decay_of(const ParamSpec& spec, double weight_decay, bool norms_and_biases);

}  // namespace redco
