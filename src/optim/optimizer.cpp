#include "optim/optimizer.h"

#include "base/error.h"
#include "ops/create.h"
#include "shard/state_dim.h"

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

Tensor Optimizer::part(const ParamTree& params, const std::vector<Tensor>& grads, size_t i,
                       StateSharding sharding) {
  const Tensor &p = params.values()[i], &g = grads[i];
  REDCO_CHECK(g.layout() == state_layout(p, sharding), "{}: gradient {} of {}", params.specs()[i].name,
              describe(g), describe(p));
  i64 first = 0;  // element
  if (p.rank() > 0 && p.local_numel() > 0) {
    const int dim = state_dim(p.layout(), p.shape(), Context::current().mesh());
    first = elements_before(p.local(), dim, g.range(dim).begin - p.range(dim).begin);
  }
  return Tensor::within(p, first, p.shape(), g.layout());
}

double decay_of(const ParamSpec& spec, double weight_decay, bool norms_and_biases) {
  // Scalars of heads: A_log, D and dt_bias of Mamba-2, marked _no_weight_decay in mamba_ssm.
  const bool scalars = spec.kind == ParamKind::other && spec.precise && spec.shape.size() == 1;
  const bool small = spec.kind == ParamKind::norm || spec.kind == ParamKind::bias || scalars;
  return small && !norms_and_biases ? 0 : weight_decay;
}

}  // namespace redco
