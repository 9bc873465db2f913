#include "optim/optimizer.h"

#include "base/error.h"
#include "ops/create.h"

namespace redco {

Layout state_layout(const Tensor& param, StateSharding sharding) {
  if (sharding == StateSharding::none) return param.layout();
  return sharded_over_replicas(param.layout(), param.shape(), Context::current().mesh());
}

Optimizer::Optimizer(const ParamTree& params, StateSharding sharding, const std::vector<bool>& members)
    : sharding_(sharding), updates_(params.size(), 0) {
  for (size_t i = 0; i < params.size(); ++i)
    if (params.specs()[i].trained() && (members.empty() || members[i])) members_.push_back(i);
}

ParamTree Optimizer::zeros(const ParamTree& params) const {
  std::vector<bool> mine(params.size(), false);
  for (size_t i : members_) mine[i] = true;
  ParamTree out = params.subset(mine);
  for (Tensor& t : out.values()) t = redco::zeros(t.shape(), t.dtype(), state_layout(t, sharding_));
  return out;
}

View Optimizer::part(const char* what, i64 flops_each, const ParamTree& params,
                     const std::vector<Tensor>& grads, size_t i) const {
  const Tensor &p = params.values()[i], &g = grads[i];
  REDCO_CHECK(g.layout() == state_layout(p, sharding_), "{}: gradient {} of {}", params.specs()[i].name,
              describe(g), describe(p));
  Context::current().account(what, flops_each * g.local_numel(), g.local_bytes());
  if (p.rank() == 0) return p;
  const i64 first = g.range(0).begin - p.range(0).begin;
  return local_rows(p, {first, first + g.local()[0]});
}

double decay_of(const ParamSpec& spec, double weight_decay, bool norms_and_biases) {
  const bool small = spec.kind == ParamKind::norm || spec.kind == ParamKind::bias;
  return small && !norms_and_biases ? 0 : weight_decay;
}

}  // namespace redco
