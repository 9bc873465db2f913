#include "optim/adamw.h"

#include <cmath>

#include "base/error.h"
#include "kernels/nn.h"
#include "ops/create.h"

namespace redco {

AdamW::AdamW(const AdamWSettings& settings, const ParamTree& params)
    : settings_(settings), updates_(params.size(), 0) {
  std::vector<bool> trained;
  for (size_t i = 0; i < params.size(); ++i) {
    trained.push_back(params.specs()[i].trained());
    if (trained.back()) trained_.push_back(i);
  }
  m_ = params.subset(trained);
  v_ = params.subset(trained);
  for (size_t k = 0; k < trained_.size(); ++k) {
    m_.values()[k] = zeros_like(m_.values()[k]);
    v_.values()[k] = zeros_like(v_.values()[k]);
  }
}

void AdamW::update(ParamTree& params, const std::vector<Tensor>& grads, double lr, double scale,
                   const std::vector<bool>& selected) {
  Context& c = Context::current();
  kernels::AdamW h{};
  h.lr = lr;
  h.beta1 = settings_.beta1;
  h.beta2 = settings_.beta2;
  h.eps = settings_.epsilon;
  h.grad_scale = scale;
  for (size_t k = 0; k < trained_.size(); ++k) {
    const size_t i = trained_[k];
    if (!selected.empty() && !selected[i]) continue;
    const auto t = static_cast<double>(++updates_[i]);
    h.bias1 = 1 - std::pow(settings_.beta1, t);
    h.bias2 = 1 - std::pow(settings_.beta2, t);
    const Tensor& p = params.values()[i];
    const ParamKind kind = params.specs()[i].kind;
    const bool small = kind == ParamKind::norm || kind == ParamKind::bias;
    h.weight_decay = small && !settings_.decay_norms_and_biases ? 0 : settings_.weight_decay;
    REDCO_CHECK(grads[i].layout() == p.layout(), "{}: gradient {} of {}", params.specs()[i].name,
                describe(grads[i]), describe(p));
    c.ledger().op("adamw", c.where(), 12 * p.local_numel(), p.local_bytes());
    if (p.is_meta()) continue;
    kernels::adamw(h, p.mutable_data<float>(), grads[i].data<float>(), m_.values()[k].mutable_data<float>(),
                   v_.values()[k].mutable_data<float>(), p.local_numel());
  }
}

double Schedule::at(i64 step) const {
  if (step < warmup_steps)
    return peak * static_cast<double>(step) / static_cast<double>(std::max<i64>(1, warmup_steps));
  if (kind == Kind::constant) return peak;
  const double progress = static_cast<double>(step - warmup_steps) /
                          static_cast<double>(std::max<i64>(1, total_steps - warmup_steps));
  if (kind == Kind::cosine) return peak * std::max(0.0, 0.5 * (1 + std::cos(M_PI * progress)));
  return peak * std::max(0.0, 1 - progress);
}

}  // namespace redco
