#include "ops/scan.h"

#include <utility>

#include "base/error.h"
#include "kernels/arguments.h"
#include "ops/dispatch.h"
#include "ops/elementwise.h"
#include "ops/shape.h"

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

// A loop over the elements along `dim`, each a product and a sum of slices.
Tensor linear_scan(const Tensor& a, const Tensor& b, int dim, bool reverse) {
  REDCO_CHECK(a.shape() == b.shape() && a.hidden() == b.hidden(),
              "[linear_scan] a {} and b {}: expected the same shape", describe(a), describe(b));
  const int along = a.axis(dim);
  OpCall op("linear_scan", {a, b});
  op.choose({b.numel()},
            [](OpCall::Strategies& s) {
              const auto cut = [&](const Placement& p) {
                return p.is_sharded() && p.dim != static_cast<int>(s.attribute(0));
              };
              for (const int i : {0, 1})
                if (cut(s.in(i))) s.add({s.in(i), s.in(i)}, {s.in(i)});
              s.add({Placement::replicated(), Placement::partial()}, {Placement::partial()});
              s.all_replicated();
            },
            {.attributes = {along}});
  Tensor y = op.output(b.shape(), b.dtype(), b.hidden());
  // Kernels write whole rows, so the elements are computed with dim `along` before all others.
  const i64 n = y.local()[along], rest = n > 0 ? y.local_numel() / n : 0;
  const Tensor held = OpCall::workspace(n * rest, y.dtype());
  const auto slice = [&](const Tensor& t, i64 i) { return t.view().narrowed(along, i, 1); };
  for (i64 k = 0; k < n; ++k) {
    const i64 i = reverse ? n - 1 - k : k;
    const View b_i = slice(op.in(1), i);
    const auto row = [&](i64 r) { return held.view().flat(r * rest, rest).reshaped(b_i.shape); };
    if (k == 0) {
      op.run(&Kernels::copy, b_i, row(i));
      continue;
    }
    op.run(&Kernels::binary, kernels::Binary::mul, slice(op.in(0), i), row(reverse ? i + 1 : i - 1), row(i));
    op.run(&Kernels::binary, kernels::Binary::add, row(i), b_i, row(i));
  }
  const View whole = with_first(y, along);
  op.run(&Kernels::copy, held.view().reshaped(whole.shape), whole);
  op.flops(2.0 * static_cast<double>(y.local_numel()));
  op.record({a, y}, [dim = along - b.hidden(), reverse](const Vjp& v) {
    const Tensor a = v.saved(0), h = v.saved(1);
    const i64 n = a.size(dim);
    if (n == 0) return Tensors{v.g(), v.g()};
    const i64 first = reverse ? 0 : 1;  // of the elements that follow another one
    const auto moved = [&](const Tensor& t, bool later) {
      return pad_to(narrow(t, dim, later ? 0 : 1, n - 1), dim, later ? 1 : 0, n);
    };
    const Tensor gb = linear_scan(moved(a, first == 0), v.g(), dim, !reverse);
    return Tensors{v.needs(0) ? gb * moved(h, first == 1) : Tensor(), gb};
  });
  return y;
}

}  // namespace redco
