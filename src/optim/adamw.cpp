#include "optim/adamw.h"

#include <cmath>

namespace redco {

AdamW::AdamW(const AdamWSettings& settings, const ParamTree& params, StateSharding sharding,
             const std::vector<bool>& members)
    : Optimizer(params, sharding, members), settings_(settings), m_(zeros(params)), v_(zeros(params)) {}

void AdamW::update(ParamTree& params, const std::vector<Tensor>& grads, double lr, double scale,
                   const std::vector<bool>& selected) {
  kernels::AdamW h{};
  h.lr = lr;
  h.beta1 = settings_.beta1;
  h.beta2 = settings_.beta2;
  h.eps = settings_.epsilon;
  h.grad_scale = scale;
  i64 last = 0;  // parameters that are updated together have equal numbers of updates
  const auto settings = [&](size_t i) {
    if (updates()[i] != last) {
      last = updates()[i];
      h.bias1 = 1 - std::pow(settings_.beta1, static_cast<double>(last));
      h.bias2 = 1 - std::pow(settings_.beta2, static_cast<double>(last));
    }
    h.weight_decay = decay_of(params.specs()[i], settings_.weight_decay, settings_.decay_norms_and_biases);
    return h;
  };
  each<kernels::AdamW>("adamw", 12, params, grads, selected, {&m_, &v_}, settings, [](const auto& call) {
    Context::current().run(&Kernels::adamw, call.settings, call.params, call.grads, call.state[0],
                           call.state[1]);
  });
}

}  // namespace redco
