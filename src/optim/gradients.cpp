#include "optim/gradients.h"

#include <cmath>
#include <unordered_map>

#include "base/error.h"
#include "ops/elementwise.h"
#include "ops/redistribute.h"
#include "tensor/collectives.h"
#include "tensor/transfer.h"

namespace redco {

void accumulate(std::vector<Tensor>& acc, std::vector<Tensor>&& g) {
  // New handles, so that the use count of a storage counts every gradient that shares its bytes.
  for (Tensor& t : g) t = t.detached();
  if (acc.empty()) {
    acc = std::move(g);
    return;
  }
  NoGrad off;
  Context& c = Context::current();
  for (size_t i = 0; i < acc.size(); ++i) {
    // In place, unless another tensor uses the bytes: this avoids a second set of tensors and holes in the
    // arena.
    if (acc[i].layout() == g[i].layout() && acc[i].storage().use_count() == 1 &&
        acc[i].dtype() == DType::f32) {
      c.account("accumulate", acc[i].local_numel(), acc[i].local_bytes());
      c.run(&Kernels::axpy, 1, g[i], acc[i]);
    } else {
      acc[i] = add({acc[i], g[i]});
    }
    g[i] = {};
  }
}

namespace {

// All-reduces the Partials of one axis, several tensors per call. Gradients that share storage (both terms of
// a sum, a view) are one value, which is reduced once.
void reduce_axis(std::vector<Tensor>& grads, Axis axis, i64 bucket_elements) {
  Context& c = Context::current();
  if (c.mesh().size(axis) == 1) {
    for (Tensor& g : grads)
      if (g.layout()[axis].is_partial()) g = redistribute(g, axis, Placement::replicated());
    return;
  }
  std::vector<std::vector<size_t>> values;  // the gradients that use each storage
  std::unordered_map<const Storage*, size_t> known;
  for (size_t i = 0; i < grads.size(); ++i) {
    if (!grads[i].layout()[axis].is_partial()) continue;
    REDCO_CHECK(grads[i].dtype() == DType::f32, "gradient {}", describe(grads[i]));
    const auto [at, is_new] = known.try_emplace(grads[i].storage().get(), values.size());
    if (is_new) values.emplace_back();
    values[at->second].push_back(i);
  }
  std::vector<const std::vector<size_t>*> bucket;
  i64 elements = 0;
  auto flush = [&] {
    if (bucket.empty()) return;
    const Tensor flat({elements}, DType::f32, {});
    c.account(Collective::all_reduce, axis, flat.local_bytes());
    i64 at = 0;
    const auto copy = [&](const View& from, const View& to) { c.run(&Kernels::copy, from, to); };
    for (const auto* sharing : bucket) {
      const View g = grads[sharing->front()];
      copy(g.flat(0, g.numel()), flat.view().flat(at, g.numel()));
      at += g.numel();
    }
    Collectives(axis).all_reduce(flat);
    at = 0;
    for (const auto* sharing : bucket) {
      const Tensor first = grads[sharing->front()];
      // In place, unless another tensor uses the unreduced bytes.
      const bool own = first.storage().use_count() == static_cast<long>(sharing->size());
      const auto reduced_layout = [&](const Tensor& g) {
        Layout l = g.layout();
        l[axis] = Placement::replicated();
        return l;
      };
      const Tensor reduced = own ? first : Tensor(first.shape(), DType::f32, reduced_layout(first));
      const i64 n = reduced.local_numel();
      copy(flat.view().flat(at, n), reduced.view().flat(0, n));
      at += n;
      for (size_t i : *sharing)
        grads[i] = Tensor::view(reduced, grads[i].shape(), reduced_layout(grads[i]), 0);
    }
    bucket.clear();
    elements = 0;
  };
  for (const auto& sharing : values) {
    const i64 n = grads[sharing.front()].local_numel();
    if (elements + n > bucket_elements) flush();
    bucket.push_back(&sharing);
    elements += n;
  }
  flush();
}

}  // namespace

void reduce_gradients(std::vector<Tensor>& grads, const ParamTree& params, const std::vector<size_t>& index,
                      i64 bucket_elements) {
  NoGrad off;
  Scope scope("gradients");
  for (Tensor& g : grads) g = g.detached();
  for (Axis a : Context::current().mesh().axes()) reduce_axis(grads, a, bucket_elements);
  for (size_t k = 0; k < grads.size(); ++k)
    grads[k] = redistribute(grads[k], params.values()[index[k]].layout());
}

double gradient_norm(const std::vector<Tensor>& grads) {
  Context& c = Context::current();
  Scope scope("norm");
  const i64 n = static_cast<i64>(grads.size());
  i64 largest = 0;
  for (const Tensor& g : grads) largest = std::max(largest, g.local_numel());
  const Kernels& kernels = c.queue().kernels();
  const Tensor squares({n}, DType::f64, {}), room({kernels.sum_squares_workspace(largest)}, DType::f64, {});
  c.run(&Kernels::fill, squares, 0);
  for (i64 i = 0; i < n; ++i) {
    const Tensor& g = grads[i];
    bool mine = true;  // of the copies on a model axis, the first one counts
    for (Axis a : c.mesh().axes())
      if (c.mesh().role(a) == AxisRole::model && !g.layout()[a].is_sharded())
        mine = mine && c.coord().at(a) == 0;
    if (mine) c.run(&Kernels::sum_squares, g, squares.view().flat(i, 1), room);
  }
  double sum = 0;
  for (const double s : host_copy<double>(squares)) sum += s;
  for (Axis a : c.mesh().axes()) {
    if (c.mesh().role(a) != AxisRole::model || c.mesh().size(a) == 1) continue;
    c.account(Collective::all_reduce, a, sizeof sum);
    c.group(a).all_reduce<double>(&sum, 1);
  }
  return std::sqrt(sum);
}

}  // namespace redco
