#include "optim/master_weights.h"

#include "ops/create.h"
#include "ops/redistribute.h"
#include "optim/optimizer.h"
#include "shard/state_dim.h"

namespace redco {

DType trained_type(const ParamSpec& spec, DType weights) {
  const DType type = ParamStorage{.weights = weights}.type_of(spec);
  return is_grouped(type) ? DType::f32 : type;
}

MasterWeights::MasterWeights(ParamTree& params, DType weights, StateSharding sharding)
    : masters_(params.size()) {
  for (size_t i = 0; i < params.size(); ++i) {
    const ParamSpec& spec = params.specs()[i];
    Tensor& p = params.values()[i];
    const DType type = trained_type(spec, weights);
    if (!spec.trained() || type == DType::f32) continue;
    const Tensor whole = p;
    masters_[i] = redistribute(whole, state_layout(whole, sharding));
    p = parameter(whole.shape(), type, whole.used_layout(), sharding);
  }
  round(params);
}

ParamTree MasterWeights::of(const ParamTree& params) const {
  std::vector<Tensor> values = params.values();
  for (size_t i = 0; i < values.size(); ++i)
    if (masters_[i].defined()) values[i] = masters_[i];
  return params.with_values(std::move(values));
}

void MasterWeights::round(ParamTree& params, const std::vector<bool>& selected) const {
  Context& c = Context::current();
  Views from, to;
  std::vector<RowParts> rounded;
  for (size_t i = 0; i < masters_.size(); ++i) {
    const Tensor& master = masters_[i];
    if (!master.defined() || (!selected.empty() && !selected[i])) continue;
    const Tensor& p = params.values()[i];
    const int dim = state_dim(p.layout(), p.shape(), c.mesh());
    const i64 first = elements_before(p.local(), dim, master.range(dim).begin - p.range(dim).begin);
    c.account("round", 0, master.local_bytes());
    from.push_back(master);
    to.push_back(p.view().flat(first, master.local_numel()));
    rounded.push_back({p, master.layout()});
  }
  if (!from.empty()) c.run(&Kernels::round_weights, from, to);
  const Scope scope("parameters");
  gather_rows_in_place(rounded);
}

}  // namespace redco
