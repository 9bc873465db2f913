#include "optim/gradients.h"

#include <cmath>

#include "base/error.h"
#include "kernels/elementwise.h"
#include "ops/elementwise.h"
#include "ops/redistribute.h"

namespace redco {

void accumulate(std::vector<Tensor>& acc, std::vector<Tensor>&& g) {
  if (acc.empty()) {
    acc = std::move(g);
    return;
  }
  NoGrad off;
  Context& c = Context::current();
  for (size_t i = 0; i < acc.size(); ++i) {
    // In place, unless something else uses the bytes: no second set of tensors, no holes where the first was.
    if (acc[i].layout() == g[i].layout() && acc[i].storage().use_count() == 1 &&
        acc[i].dtype() == DType::f32) {
      c.ledger().op("accumulate", c.where(), acc[i].local_numel(), acc[i].local_bytes());
      if (!acc[i].is_meta())
        kernels::axpy<float>(1.f, g[i].data<float>(), acc[i].mutable_data<float>(), acc[i].local_numel());
    } else {
      acc[i] = add({acc[i], g[i]});
    }
    g[i] = {};
  }
}

namespace {

// All-reduces the Partials of one axis, several tensors a call.
void reduce_axis(std::vector<Tensor>& grads, Axis axis) {
  Context& c = Context::current();
  std::vector<size_t> bucket;
  i64 elements = 0;
  auto flush = [&] {
    if (bucket.empty()) return;
    Tensor flat({elements}, DType::f32, {});
    float* const p = flat.mutable_data<float>();
    c.ledger().collective(Collective::all_reduce, axis, c.where(), flat.local_bytes());
    i64 at = 0;
    if (!flat.is_meta())
      for (size_t i : bucket) {
        std::memcpy(p + at, grads[i].raw(), grads[i].local_bytes());
        at += grads[i].local_numel();
      }
    c.group(axis).all_reduce<float>(p, elements);
    at = 0;
    for (size_t i : bucket) {
      Layout l = grads[i].layout();
      l[axis] = Placement::replicated();
      Tensor reduced = Tensor::view(grads[i], grads[i].shape(), l, 0);
      if (!flat.is_meta()) std::memcpy(reduced.mutable_raw(), p + at, reduced.local_bytes());
      at += reduced.local_numel();
      grads[i] = reduced;
    }
    bucket.clear();
    elements = 0;
  };
  for (size_t i = 0; i < grads.size(); ++i) {
    if (!grads[i].layout()[axis].is_partial()) continue;
    if (c.mesh().size(axis) == 1) {
      grads[i] = redistribute(grads[i], axis, Placement::replicated());
      continue;
    }
    REDCO_CHECK(grads[i].dtype() == DType::f32, "gradient {}", describe(grads[i]));
    if (elements + grads[i].local_numel() > kBucketElements) flush();
    bucket.push_back(i);
    elements += grads[i].local_numel();
  }
  flush();
}

}  // namespace

void reduce_gradients(std::vector<Tensor>& grads, const ParamTree& params, const std::vector<size_t>& index) {
  NoGrad off;
  Scope scope("gradients");
  for (Tensor& g : grads) g = g.detached();
  for (Axis a : kAxes) reduce_axis(grads, a);
  for (size_t k = 0; k < grads.size(); ++k)
    grads[k] = redistribute(grads[k], params.values()[index[k]].layout());
}

double gradient_norm(const std::vector<Tensor>& grads) {
  Context& c = Context::current();
  Scope scope("norm");
  double sum = 0;
  for (const Tensor& g : grads) {
    if (g.is_meta()) continue;
    if (g.layout()[Axis::mp].is_sharded() || c.coord().mp == 0)
      sum += kernels::sum_squares<float>(g.data<float>(), g.local_numel());
  }
  if (c.mesh().mp > 1) {
    c.ledger().collective(Collective::all_reduce, Axis::mp, c.where(), sizeof sum);
    c.group(Axis::mp).all_reduce<double>(&sum, 1);
  }
  return std::sqrt(sum);
}

}  // namespace redco
