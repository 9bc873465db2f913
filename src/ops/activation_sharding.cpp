#include "ops/activation_sharding.h"

#include "ops/redistribute.h"

namespace redco {

Tensor shard_over_model(const Tensor& x, int dim) {
  const Mesh& mesh = Context::current().mesh();
  Tensor out = x;
  for (Axis a : mesh.axes())
    if (mesh.role(a) == AxisRole::model && mesh.size(a) > 1)
      out = redistribute(out, a, Placement::sharded(dim));
  return out;
}

Tensor gather_over_model(const Tensor& x, int dim) {
  const Mesh& mesh = Context::current().mesh();
  Tensor out = x;
  for (Axis a : mesh.axes())
    if (mesh.role(a) == AxisRole::model && out.layout()[a].is_sharded(dim))
      out = redistribute(out, a, Placement::replicated());
  return out;
}

}  // namespace redco
