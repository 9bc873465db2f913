// Optimizer: how trained parameters follow their gradients. What they have in common: whose parameters they
// update, state to be checkpointed, counts of updates.
#pragma once

#include <string>
#include <vector>

#include "nn/param_tree.h"

namespace redco {

class Optimizer {
 public:
  virtual ~Optimizer() = default;

  // "adamw", "sgd", "sgd with momentum": where two have the same name, one goes on from the other's state.
  virtual std::string name() const = 0;

  // One update, in place, of the trained parameters with selected[i] (all if empty). grads[i] is of parameter
  // i, placed like it. Gradients are multiplied by `scale` (clipping).
  virtual void update(ParamTree& params, const std::vector<Tensor>& grads, double learning_rate, double scale,
                      const std::vector<bool>& selected = {}) = 0;

  // Its tensors beside parameters, by PyTorch's names: fp32 trees of the trained parameters, placed like
  // them.
  struct State {
    std::string name;  // exp_avg, momentum_buffer
    ParamTree* tree;
  };
  virtual std::vector<State> state() = 0;

  // Updates that each parameter has had, PyTorch's `step`: part of the state, as parameters may be updated at
  // different times.
  std::vector<i64>& updates() { return updates_; }

 protected:
  explicit Optimizer(const ParamTree& params);
  ParamTree zeros(const ParamTree& params) const;  // of the trained parameters
  // What an update does to each: checks the gradient, notes `flops_each` in the ledger under `what`, counts,
  // and calls f(k, i, values and gradient of parameter i, the k-th that is trained) where there are bytes.
  template <class F>
  void each(const char* what, i64 flops_each, ParamTree& params, const std::vector<Tensor>& grads,
            const std::vector<bool>& selected, const F& f) {
    for (size_t k = 0; k < trained_.size(); ++k) {
      const size_t i = trained_[k];
      if (!selected.empty() && !selected[i]) continue;
      ++updates_[i];
      if (begin(what, flops_each, params, grads, i)) f(k, i);
    }
  }

  std::vector<size_t> trained_;  // their places among all parameters

 private:
  static bool begin(const char* what, i64 flops_each, const ParamTree& params,
                    const std::vector<Tensor>& grads, size_t i);
  std::vector<i64> updates_;
};

// The weight decay of a parameter: none of norms and biases unless they are to decay too.
double decay_of(const ParamSpec& spec, double weight_decay, bool norms_and_biases);

}  // namespace redco
