// Optimizer: updates trained parameters, which are fp32, from their gradients. The common part: the
// parameters to update, state for checkpoints, and numbers of updates.
#pragma once

#include <algorithm>
#include <array>
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
  // The indices of its parameters among all.
  const std::vector<size_t>& members() const { return members_; }
  // This rank's part of parameter i, in the same bytes. Checks the gradient.
  static Tensor part(const ParamTree& params, const std::vector<Tensor>& grads, size_t i,
                     StateSharding sharding);
  StateSharding sharding() const { return sharding_; }
  // members[i]: parameter i may be updated; empty: all trained ones.
  Optimizer(const ParamTree& params, StateSharding sharding, const std::vector<bool>& members);
  ParamTree zeros(const ParamTree& params) const;  // of its parameters
  // The lists of one kernel call: this rank's parts of parameters for which the kernel has equal settings,
  // with their gradients and state.
  template <class Settings>
  struct Call {
    Settings settings;
    Views params, grads;
    std::array<Views, 2> state;
  };
  // update(): checks the gradients of the selected parameters, adds `flops_each` to the ledger under `what`,
  // counts the updates, and calls run(call) with all of them. Parameter i has the settings settings_of(i) and
  // the given trees of zeros() as state; null: none.
  template <class Settings, class Of, class Run>
  void each(const char* what, i64 flops_each, ParamTree& params, const std::vector<Tensor>& grads,
            const std::vector<bool>& selected, const std::array<const ParamTree*, 2>& state,
            const Of& settings_of, const Run& run) {
    std::vector<Call<Settings>> calls;
    std::vector<RowParts> updated;
    calls.reserve(4);
    updated.reserve(members_.size());
    for (size_t k = 0; k < members_.size(); ++k) {
      const size_t i = members_[k];
      if (!selected.empty() && !selected[i]) continue;
      ++updates_[i];
      const Settings settings = settings_of(i);
      auto call = std::ranges::find(calls, settings, &Call<Settings>::settings);
      if (call == calls.end()) {
        call = calls.insert(call, {.settings = settings});
        for (Views* list : {&call->params, &call->grads, &call->state[0], &call->state[1]})
          list->reserve(members_.size());
      }
      call->params.push_back(part(params, grads, i, sharding_));
      Context::current().account(what, flops_each * grads[i].local_numel(), grads[i].local_bytes());
      call->grads.push_back(grads[i]);
      for (size_t s = 0; s < state.size(); ++s)
        if (state[s]) call->state[s].push_back(state[s]->values()[k]);
      updated.push_back({params.values()[i], grads[i].layout()});
    }
    for (const Call<Settings>& call : calls) run(call);
    const Scope scope("parameters");
    gather_rows_in_place(updated);
  }

 private:
  std::vector<size_t> members_;
  StateSharding sharding_;
  std::vector<i64> updates_;
};

// The placement of the state, and of the reduced gradient, that belong to a parameter.
Layout state_layout(const Tensor& param, StateSharding sharding);

// The weight decay of a parameter: 0 for norms and biases unless norms_and_biases.
double decay_of(const ParamSpec& spec, double weight_decay, bool norms_and_biases);

}  // namespace redco
