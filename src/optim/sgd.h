// Stochastic gradient descent with momentum (Polyak 1964), like PyTorch's SGD without dampening. Weight decay
// is coupled: it is added to the gradient.
#pragma once

#include <string>
#include <vector>

#include "optim/optimizer.h"

namespace redco {

struct SgdSettings {
  double momentum = 0;
  double weight_decay = 0;
  bool decay_norms_and_biases = false;
};

// d = g + weight_decay p;  b = momentum b + d;  p -= learning_rate b. Without momentum there is no b and no
// state.
class Sgd : public Optimizer {
 public:
  Sgd(const SgdSettings& settings, const ParamTree& params, StateSharding sharding = StateSharding::none,
      const std::vector<bool>& members = {});
  std::string name() const override { return settings_.momentum > 0 ? "sgd with momentum" : "sgd"; }
  void update(ParamTree& params, const std::vector<Tensor>& grads, double learning_rate, double scale,
              const std::vector<bool>& selected = {}) override;
  std::vector<State> state() const override;

 private:
  SgdSettings settings_;
  ParamTree buffer_;
};

}  // namespace redco
