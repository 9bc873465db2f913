// AdamW (Loshchilov & Hutter 2019), decoupled weight decay, in PyTorch's order of operations.
#pragma once

#include <string>
#include <vector>

#include "optim/optimizer.h"

namespace redco {

struct AdamWSettings {
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  double weight_decay = 0.01;
  bool decay_norms_and_biases = false;
};

// Bias corrections use each parameter's number of updates.
class AdamW : public Optimizer {
 public:
  AdamW(const AdamWSettings& settings, const ParamTree& params, StateSharding sharding = StateSharding::none,
        const std::vector<bool>& members = {});
  std::string name() const override { return "adamw"; }
  void update(ParamTree& params, const std::vector<Tensor>& grads, double learning_rate, double scale,
              const std::vector<bool>& selected = {}) override;
  std::vector<State> state() const override { return {{"exp_avg", m_}, {"exp_avg_sq", v_}}; }

 private:
  AdamWSettings settings_;
  ParamTree m_, v_;
};

}  // namespace redco
