#include "ops/scan.h"

#include <utility>

#include "kernels/arguments.h"
#include "ops/dispatch.h"

namespace redco {

namespace {

// The local block with dim `first` before all others.
View with_first(const Tensor& t, int first) {
  View v = t;
  const Strides steps = v.steps();
  const Shape shape = v.shape;
  v.shape = {shape[first]};
  v.strides = {steps[first]};
  for (int d = 0; d < t.rank(); ++d)
    if (d != first) {
      v.shape.push_back(shape[d]);
      v.strides.push_back(steps[d]);
    }
  return v;
}

}  // namespace

Tensor cumsum(const Tensor& x, int dim, bool reverse) {
  const int along = x.axis(dim);
  OpCall op("cumsum", {x});
  op.choose({x.numel()},
            [](OpCall::Strategies& s) {
              const Placement p = s.in(0);
              if (p.is_sharded(static_cast<int>(s.attribute(0)))) {
                s.all_replicated();
              } else {
                s.add({p}, {p}, p.is_replicated());
              }
            },
            {.attributes = {along}});
  Tensor y = op.output(x.shape(), x.dtype(), x.hidden());
  // Step s adds the sum of the s elements before: n elements take log2(n) passes through contiguous rows.
  const View from = with_first(op.in(0), along);
  const i64 n = from.shape[0], rest = n > 0 ? from.numel() / n : 0;
  Tensor held = OpCall::workspace(n * rest, y.dtype()), next = OpCall::workspace(n * rest, y.dtype());
  op.run(&Kernels::copy, from, held.view().reshaped(from.shape));
  for (i64 s = 1; s < n; s *= 2) {
    const View old = held, sums = next;
    const auto rows = [&](const View& v, i64 first, i64 count) { return v.flat(first * rest, count * rest); };
    const i64 kept = reverse ? n - s : 0, summed = reverse ? 0 : s;
    op.flops(static_cast<double>((n - s) * rest));
    op.run(&Kernels::copy, rows(old, kept, s), rows(sums, kept, s));
    op.run(&Kernels::binary, kernels::Binary::add, rows(old, s, n - s), rows(old, 0, n - s),
           rows(sums, summed, n - s));
    std::swap(held, next);
  }
  op.run(&Kernels::copy, held.view().reshaped(from.shape), with_first(y, along));
  op.record({}, [dim = along - x.hidden(), reverse](const Vjp& v) {
    return Tensors{cumsum(v.g(), dim, !reverse)};
  });
  return y;
}

}  // namespace redco
