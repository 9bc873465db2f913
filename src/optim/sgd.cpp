#include "optim/sgd.h"

namespace redco {

Sgd::Sgd(const SgdSettings& settings, const ParamTree& params, StateSharding sharding,
         const std::vector<bool>& members)
    : Optimizer(params, sharding, members), settings_(settings) {
  if (settings_.momentum > 0) buffer_ = zeros(params);
}

std::vector<Optimizer::State> Sgd::state() const {
  if (settings_.momentum > 0) return {{"momentum_buffer", buffer_}};
  return {};
}

void Sgd::update(ParamTree& params, const std::vector<Tensor>& grads, double lr, double scale,
                 const std::vector<bool>& selected) {
  const bool momentum = settings_.momentum > 0;
  const auto settings = [&](size_t i) {
    return kernels::Sgd{
        .lr = lr,
        .momentum = settings_.momentum,
        .weight_decay = decay_of(params.specs()[i], settings_.weight_decay, settings_.decay_norms_and_biases),
        .grad_scale = scale};
  };
  each<kernels::Sgd>("sgd", momentum ? 7 : 5, params, grads, selected,
                     {momentum ? &buffer_ : nullptr, nullptr}, settings, [](const auto& call) {
                       Context::current().run(&Kernels::sgd, call.settings, call.params, call.grads,
                                              call.state[0]);
                     });
}

}  // namespace redco
