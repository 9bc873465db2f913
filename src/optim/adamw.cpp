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
  each("adamw", 12, params, grads, selected, [&](size_t k, size_t i, const View& p) {
    const auto t = static_cast<double>(updates()[i]);
    h.bias1 = 1 - std::pow(settings_.beta1, t);
    h.bias2 = 1 - std::pow(settings_.beta2, t);
    h.weight_decay = decay_of(params.specs()[i], settings_.weight_decay, settings_.decay_norms_and_biases);
    Context::current().run(&Kernels::adamw, h, p, grads[i], m_.values()[k], v_.values()[k]);
  });
}

}  // namespace redco
