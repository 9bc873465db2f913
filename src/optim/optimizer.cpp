#include "optim/optimizer.h"

#include "base/error.h"
#include "ops/create.h"

namespace redco {

Optimizer::Optimizer(const ParamTree& params) : updates_(params.size(), 0) {
  for (size_t i = 0; i < params.size(); ++i)
    if (params.specs()[i].trained()) trained_.push_back(i);
}

ParamTree Optimizer::zeros(const ParamTree& params) const {
  std::vector<bool> trained(params.size(), false);
  for (size_t i : trained_) trained[i] = true;
  ParamTree out = params.subset(trained);
  for (Tensor& t : out.values()) t = zeros_like(t);
  return out;
}

bool Optimizer::begin(const char* what, i64 flops_each, const ParamTree& params,
                      const std::vector<Tensor>& grads, size_t i) {
  const Tensor& p = params.values()[i];
  REDCO_CHECK(grads[i].layout() == p.layout(), "{}: gradient {} of {}", params.specs()[i].name,
              describe(grads[i]), describe(p));
  Context::current().account(what, flops_each * p.local_numel(), p.local_bytes());
  return !p.is_meta();
}

double decay_of(const ParamSpec& spec, double weight_decay, bool norms_and_biases) {
  const bool small = spec.kind == ParamKind::norm || spec.kind == ParamKind::bias;
  return small && !norms_and_biases ? 0 : weight_decay;
}

}  // namespace redco
