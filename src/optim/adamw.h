// AdamW (Loshchilov & Hutter 2019), decoupled weight decay, in PyTorch's order of operations.
#pragma once

#include <string>
#include <vector>

#include "nn/param_tree.h"

namespace redco {

struct AdamWSettings {
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  double weight_decay = 0.01;
  bool decay_norms_and_biases = false;
};

// The moments of a tree's trained parameters, placed like them. fp32.
class AdamW {
 public:
  AdamW(const AdamWSettings& settings, const ParamTree& params);

  // One update, in place, of the trained parameters with selected[i] (all if empty). grads[i] is of parameter
  // i. Gradients are multiplied by `scale` (clipping).
  void update(ParamTree& params, const std::vector<Tensor>& grads, double learning_rate, double scale,
              const std::vector<bool>& selected = {});

  // Trees of the trained parameters.
  ParamTree& exp_avg() { return m_; }
  ParamTree& exp_avg_sq() { return v_; }
  // Updates that each parameter has had, PyTorch's `step`: part of the state. The bias corrections are of
  // these, as parameters may be updated at different times.
  std::vector<i64>& updates() { return updates_; }

 private:
  AdamWSettings settings_;
  std::vector<i64> updates_;
  std::vector<size_t> trained_;  // their places among all parameters
  ParamTree m_, v_;
};

// Warm-up from 0, then as the schedule says, to 0 at total_steps (Hugging Face's get_*_schedule_with_warmup).
struct Schedule {
  enum class Kind : std::uint8_t { linear, cosine, constant } kind = Kind::linear;
  double peak = 0;
  i64 warmup_steps = 0, total_steps = 0;
  double at(i64 step) const;  // step counts from 0: the first update uses at(0)
};

}  // namespace redco
