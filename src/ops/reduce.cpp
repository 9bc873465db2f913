#include "ops/reduce.h"

#include <limits>

#include "ops/broadcast.h"
#include "ops/dispatch.h"
#include "ops/elementwise.h"
#include "ops/shape.h"

namespace redco {

namespace {

// Dims of a sum: bit d means dim d of x, visible or hidden.
struct SumDims {
  u32 over = 0;     // these are summed
  u32 dropped = 0;  // the sum lacks these, which are summed or of size 1; other summed dims have size 1
};

// hidden: of the sum. room: where the sum may be written, if it is the gradient of a leaf.
Tensor sum_over(const Tensor& x, const SumDims& dims, int hidden, const GradientRoom& room = {}) {
  OpCall op("sum", {x}, Accepts::activations());
  Shape shape, kept = x.shape();
  for (int d = 0; d < x.rank(); ++d) {
    if (dims.over >> d & 1) kept[d] = 1;
    if (!(dims.dropped >> d & 1)) shape.push_back(kept[d]);
  }
  op.choose({numel(shape)},
            [](OpCall::Strategies& s) {
              const Placement p = s.in(0);
              if (p.is_sharded() && (s.attribute(0) >> p.dim & 1)) {
                s.add({p}, {Placement::partial()});
                return;
              }
              Placement out = p;
              if (p.is_sharded())
                for (int d = 0; d < p.dim; ++d)
                  out.dim = static_cast<std::int8_t>(out.dim - (s.attribute(1) >> d & 1));
              s.add({p}, {out}, p.is_replicated());
            },
            {.attributes = {dims.over, dims.dropped}});
  Tensor y =
      room.sink ? op.output(shape, sum_type(x.dtype()), room) : op.output(shape, sum_type(x.dtype()), hidden);
  op.flops(static_cast<double>(op.in(0).local_numel()));
  const Tensor space = OpCall::workspace(op.kernels().sum_workspace(op.in(0), dims.over), DType::f64);
  Shape cells = op.in(0).local();  // as the kernel writes them
  for (int d = 0; d < x.rank(); ++d)
    if (dims.over >> d & 1) cells[d] = 1;
  op.run(&Kernels::sum, op.in(0), dims.over, y.view().reshaped(cells), space);
  // The cotangent is broadcast with the input's placement, so that a cut input costs only a free slice.
  op.record({}, [kept, shape = x.shape(), layout = op.in(0).layout(), h = x.hidden()](const Vjp& v) {
    return Tensors{broadcast_to(reshape_all(v.g(), kept, h), shape, layout)};
  });
  return y;
}

}  // namespace

Tensor sum(const Tensor& x, const std::vector<int>& dims, bool keepdim) {
  u32 over = 0;
  for (int d : dims) over |= u32{1} << x.axis(d);
  return sum_over(x, {over, keepdim ? 0 : over}, x.hidden());
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

Tensor sum_to(const Tensor& g, const Shape& shape, int hidden, const GradientRoom& room) {
  if (g.shape() == shape && g.hidden() == hidden) return g;
  const int rank = g.rank(), own = static_cast<int>(shape.size());
  SumDims dims;
  for (int D = 0; D < rank; ++D) {
    const int d = aligned_dim(D, rank, g.hidden(), own, hidden);
    // A cut dim that is removed must be summed even if its size is 1 (one row over several replicas).
    bool cut = false;
    for (Axis a : Context::current().mesh().axes()) cut |= g.layout()[a].is_sharded(D);
    if (d < 0) dims.dropped |= u32{1} << D;
    if (d < 0 ? g.shape()[D] != 1 || cut : g.shape()[D] != 1 && shape[d] == 1) dims.over |= u32{1} << D;
  }
  if (dims.over == 0) return reshape_all(g, shape, hidden);
  return reshape_all(sum_over(g, dims, hidden, room), shape, hidden);
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
