#include "ops/reduce.h"

#include <limits>

#include "ops/broadcast.h"
#include "ops/dispatch.h"
#include "ops/elementwise.h"
#include "ops/shape.h"

namespace redco {

namespace {

// A flag for each dim.
using Flags = SmallVector<bool, 8>;

// Sum over the dims flagged in `over` (visible and hidden dims); these get size 1.
Tensor sum_keep(const Tensor& x, const Flags& over) {
  OpCall op("sum", {x}, Accepts::activations());
  Shape shape = x.shape();
  i64 summed = 0;  // bit d: over dim d
  for (size_t d = 0; d < shape.size(); ++d)
    if (over[d]) {
      shape[d] = 1;
      summed |= i64{1} << d;
    }
  op.choose({numel(shape)},
            [](OpCall::Strategies& s) {
              const Placement p = s.in(0);
              if (p.is_sharded() && (s.attribute(0) >> p.dim & 1)) {
                s.add({p}, {Placement::partial()});
              } else {
                s.add({p}, {p}, p.is_replicated());
              }
            },
            {.attributes = {summed}});
  Tensor y = op.output(shape, sum_type(x.dtype()), x.hidden());
  op.flops(static_cast<double>(op.in(0).local_numel()));
  const auto dims = static_cast<u32>(summed);
  const Tensor room = OpCall::workspace(op.kernels().sum_workspace(op.in(0), dims), DType::f64);
  op.run(&Kernels::sum, op.in(0), dims, y, room);
  // The cotangent is broadcast with the input's placement, so that a cut input costs only a free slice.
  op.record({}, [shape = x.shape(), layout = op.in(0).layout()](const Vjp& v) {
    return Tensors{broadcast_to(v.g(), shape, layout)};
  });
  return y;
}

}  // namespace

Tensor sum(const Tensor& x, const std::vector<int>& dims, bool keepdim) {
  Flags over(x.rank(), false);
  for (int d : dims) over[x.axis(d)] = true;
  const Tensor y = sum_keep(x, over);
  if (keepdim) return y;
  Shape visible;
  for (int d = x.hidden(); d < x.rank(); ++d)
    if (!over[d]) visible.push_back(x.shape()[d]);
  return reshape(y, visible);
}

Tensor sum_all(const Tensor& x) {
  std::vector<int> dims(x.visible());
  for (int d = 0; d < x.visible(); ++d) dims[d] = d;
  return sum(x, dims);
}

Tensor mean(const Tensor& x, const std::vector<int>& dims, bool keepdim) {
  i64 n = 1;
  for (int d : dims) n *= x.size(d);
  return scale(sum(x, dims, keepdim), n > 0 ? 1.0 / n : 0.0);
}

Tensor sum_to(const Tensor& g, const Shape& shape, int hidden) {
  if (g.shape() == shape && g.hidden() == hidden) return g;
  const int rank = g.rank(), own = static_cast<int>(shape.size());
  Flags over(rank, false);
  bool any = false;
  for (int D = 0; D < rank; ++D) {
    const int d = aligned_dim(D, rank, g.hidden(), own, hidden);
    // A cut dim that is removed must be summed even if its size is 1 (one row over several replicas).
    bool cut = false;
    for (Axis a : Context::current().mesh().axes()) cut |= g.layout()[a].is_sharded(D);
    over[D] = d < 0 ? g.shape()[D] != 1 || cut : g.shape()[D] != 1 && shape[d] == 1;
    any = any || over[D];
  }
  return reshape_all(any ? sum_keep(g, over) : g, shape, hidden);
}

Tensor max_last(const Tensor& x) {
  OpCall op("max", {x}, Accepts::activations());
  Shape shape = x.shape();
  shape.back() = 1;
  const int last = x.rank() - 1;
  op.choose({numel(shape)}, [](OpCall::Strategies& s) {
    const Placement p = s.in(0);
    if (p.is_partial()) {
      s.all_replicated();
    } else if (p.is_sharded(s.input(0).rank() - 1)) {
      s.add({p}, {Placement::replicated()});  // communicates inside the op
    } else {
      s.add({p}, {p}, p.is_replicated());
    }
  });
  Tensor y = op.output(shape, sum_type(x.dtype()), x.hidden());
  op.flops(static_cast<double>(op.in(0).local_numel()));
  op.run(&Kernels::max_last, op.in(0), y);
  for (Axis a : Context::current().mesh().axes())
    if (op.in(0).layout()[a].is_sharded(last)) reduce_inside(y, a, true);
  op.no_gradient();
  return y;
}

}  // namespace redco
