#include "optim/deal.h"

#include "tensor/context.h"

namespace redco {

bool divides_state(const Mesh& mesh, Axis a) { return mesh.role(a) == AxisRole::data && mesh.size(a) > 1; }

void copy_into(const Tensor& from, const Tensor& to) { Context::current().run(&Kernels::copy, from, to); }

namespace {

// The layout with the model shards only.
Layout whole_on_replicas(Layout l) {
  const Mesh& mesh = Context::current().mesh();
  for (Axis a : mesh.axes())
    if (divides_state(mesh, a)) l[a] = Placement::replicated();
  return l;
}

// The layout of k * n stacked tensors, as (k, n, shape...).
Layout stacked(const Layout& of) {
  Layout out = of;
  for (Placement& p : out.on)
    if (p.is_sharded()) p = Placement::sharded(p.dim + 2, p.unit);
  return out;
}

// Tensor (j, s) of a stack of which this rank holds whole tensors or equal parts of all.
Tensor entry(const Tensor& stack, i64 j, i64 s, const Shape& shape, const Layout& layout) {
  const i64 n = stack.shape()[1], all = stack.local()[0] * n;
  return Tensor::within(stack, (j * n + s) * (stack.local_numel() / all), shape, layout);
}

}  // namespace

Tensor stack_of(i64 k, i64 n, const Tensor& like, const Layout& layout) {
  Shape shape = {k, n};
  for (const i64 size : like.shape()) shape.push_back(size);
  return Tensor(shape, like.dtype(), layout);
}

Tensor to_replicas(const std::vector<Tensors>& parts) {
  const auto k = static_cast<i64>(parts.size()), n = static_cast<i64>(parts[0].size());
  const Tensor& like = parts[0][0];
  const Layout cut = stacked(like.layout());
  const Tensor all = stack_of(k, n, like, cut);
  for (i64 j = 0; j < k && all.local_numel() > 0; ++j)
    for (i64 s = 0; s < n; ++s) copy_into(parts[j][s], entry(all, j, s, like.shape(), like.layout()));
  Layout dealt = stacked(whole_on_replicas(like.layout()));
  const Mesh& mesh = Context::current().mesh();
  for (Axis a : mesh.axes())
    if (divides_state(mesh, a)) dealt[a] = Placement::sharded(0);
  return redistribute(all, dealt);
}

void from_replicas(const Tensor& dealt, const std::vector<Tensors>& parts) {
  const auto k = static_cast<i64>(parts.size()), n = static_cast<i64>(parts[0].size());
  const Tensor& like = parts[0][0];
  const Tensor all = redistribute(dealt, stacked(like.layout()));
  for (i64 j = 0; j < k && all.local_numel() > 0; ++j)
    for (i64 s = 0; s < n; ++s) copy_into(entry(all, j, s, like.shape(), like.layout()), parts[j][s]);
}

Tensor dealt_entry(const Tensor& stack, i64 n, const Tensor& part) {
  return entry(stack, 0, n, part.shape(), whole_on_replicas(part.layout()));
}

}  // namespace redco
