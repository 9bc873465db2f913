#include "ops/shape.h"

#include "kernels/elementwise.h"
#include "ops/dispatch.h"
#include "ops/elementwise.h"
#include "ops/reduce.h"

namespace redco {

// The cut dim consists of `outer` blocks of inner * from[dim] elements. The cut is kept on the new dim at
// which the same blocks start (the same number of elements before it; dims of size 1 are skipped), if its
// units are whole steps of that dim. A cut dim of size 1 (a batch of one row over several replicas) stays on
// a dim of size 1.
bool reshape_placement(const Shape& from, const Shape& to, const Placement& p, Placement* out) {
  if (numel(from) == 0) return false;
  i64 inner = 1, outer = 1;
  for (size_t d = p.dim + 1; d < from.size(); ++d) inner *= from[d];
  for (int d = 0; d < p.dim; ++d) outer *= from[d];
  if (from[p.dim] == 1) {
    i64 before = 1;
    int at = -1;
    for (size_t d = 0; d < to.size() && before <= outer; ++d) {
      if (before == outer && to[d] == 1 && (at < 0 || static_cast<int>(d) == p.dim)) at = static_cast<int>(d);
      before *= to[d];
    }
    if (at >= 0) *out = Placement::sharded(at, 1);
    return at >= 0;
  }
  i64 before = 1;
  for (size_t d = 0; d < to.size() && before <= outer; ++d) {
    if (before == outer && to[d] > 1) {
      i64 step = 1;  // elements per index of the new dim
      for (size_t e = d + 1; e < to.size(); ++e) step *= to[e];
      if (p.unit * inner % step != 0) return false;
      *out = Placement::sharded(static_cast<int>(d), p.unit * inner / step);
      return true;
    }
    before *= to[d];
  }
  return false;
}

Tensor reshape_all(const Tensor& x, const Shape& shape, int hidden) {
  REDCO_CHECK(numel(shape) == x.numel(), "[reshape] cannot reshape {} to {}", describe(x), to_string(shape));
  if (shape == x.shape()) return x.with_hidden(hidden);
  Layout kept;  // the cuts that can be kept
  for (Axis a : Context::current().mesh().axes())
    if (const Placement p = x.layout()[a]; p.is_sharded()) reshape_placement(x.shape(), shape, p, &kept[a]);
  OpCall op("reshape", {x});
  op.choose({x.numel()},
            [](OpCall::Strategies& s) {
              const Placement p = s.in(0);
              if (!p.is_sharded()) {
                s.add({p}, {p}, true);
              } else if (s.wish().is_sharded()) {
                s.add({p}, {s.wish()});
              } else {
                s.all_replicated();
              }
            },
            {.wish = kept});
  Tensor y = op.view_of(op.in(0), shape, hidden);
  op.record(
      {}, [from = x.shape(), h = x.hidden()](const Vjp& v) { return Tensors{reshape_all(v.g(), from, h)}; });
  return y;
}

Tensor reshape(const Tensor& x, Shape visible) {
  i64 known = 1, total = 1;
  int open = -1;
  for (int d = x.hidden(); d < x.rank(); ++d) total *= x.shape()[d];
  for (size_t d = 0; d < visible.size(); ++d) {
    if (visible[d] == -1) {
      REDCO_CHECK(open < 0, "[reshape] more than one dim is -1");
      open = static_cast<int>(d);
    } else {
      known *= visible[d];
    }
  }
  if (open >= 0) visible[open] = known ? total / known : 0;
  Shape shape(x.shape().begin(), x.shape().begin() + x.hidden());
  shape.insert(shape.end(), visible.begin(), visible.end());
  return reshape_all(x, shape, x.hidden());
}

Tensor permute(const Tensor& x, const std::vector<int>& dims) {
  REDCO_CHECK(static_cast<int>(dims.size()) == x.visible(), "[permute] {} dims given for {}", dims.size(),
              describe(x));
  SmallVector<int, 6> order(x.rank());
  for (int d = 0; d < x.hidden(); ++d) order[d] = d;
  for (size_t d = 0; d < dims.size(); ++d) order[x.hidden() + d] = x.axis(dims[d]);
  SmallVector<int, 6> where(x.rank(), -1);
  Shape shape(x.rank());
  for (int d = 0; d < x.rank(); ++d) {
    shape[d] = x.shape()[order[d]];
    where[order[d]] = d;
  }
  Layout moved;
  for (Axis a : Context::current().mesh().axes()) {
    const Placement p = x.layout()[a];
    moved[a] = p.is_sharded() ? Placement::sharded(where[p.dim], p.unit) : p;
  }
  OpCall op("permute", {x});
  op.choose({x.numel()}, [](OpCall::Strategies& s) { s.add({s.in(0)}, {s.wish()}, s.in(0).is_replicated()); },
            {.wish = moved});
  Tensor y = op.output(shape, x.dtype(), x.hidden());
  if (op.runs()) {
    const auto from = row_major(op.in(0).local());
    Strides in_strides(x.rank());
    for (int d = 0; d < x.rank(); ++d) in_strides[d] = from[order[d]];
    kernels::copy_strided(op.in(0).raw(), in_strides, y.mutable_raw(), row_major(y.local()), y.local(),
                          size_of(x.dtype()));
  }
  std::vector<int> back(dims.size());
  for (int d = x.hidden(); d < x.rank(); ++d) back[d - x.hidden()] = where[d] - x.hidden();
  op.record({}, [back](const Vjp& v) { return Tensors{permute(v.g(), back)}; });
  return y;
}

Tensor transpose(const Tensor& x, int a, int b) {
  std::vector<int> dims(x.visible());
  for (int d = 0; d < x.visible(); ++d) dims[d] = d;
  std::swap(dims[x.axis(a) - x.hidden()], dims[x.axis(b) - x.hidden()]);
  return permute(x, dims);
}

namespace {

// The placement is kept unless it cuts the dim along which the op works (the attribute).
void keep_unless_along(OpCall::Strategies& s) {
  const Placement p = s.in(0);
  if (p.is_sharded(static_cast<int>(s.attribute(0)))) {
    s.all_replicated();
  } else {
    s.add({p}, {p}, p.is_replicated());
  }
}

}  // namespace

Tensor narrow(const Tensor& x, int dim, i64 start, i64 length) {
  const int along = x.axis(dim);
  REDCO_CHECK(start >= 0 && length >= 0 && start + length <= x.shape()[along],
              "[narrow] range [{}, {}) is outside dim {} of {}", start, start + length, dim, describe(x));
  if (length == x.shape()[along]) return x;
  OpCall op("narrow", {x});
  Shape shape = x.shape();
  shape[along] = length;
  op.choose({numel(shape)}, keep_unless_along, {.attributes = {along}});
  Tensor y = op.output(shape, x.dtype(), x.hidden());
  if (op.runs()) {
    const auto in_strides = row_major(op.in(0).local());
    kernels::copy_strided(
        static_cast<const char*>(op.in(0).raw()) + start * in_strides[along] * size_of(x.dtype()), in_strides,
        y.mutable_raw(), row_major(y.local()), y.local(), size_of(x.dtype()));
  }
  op.record({}, [d = along - x.hidden(), start, size = x.shape()[along]](const Vjp& v) {
    return Tensors{pad_to(v.g(), d, start, size)};
  });
  return y;
}

Tensor pad_to(const Tensor& x, int dim, i64 start, i64 size) {
  const int along = x.axis(dim);
  const i64 length = x.shape()[along];
  REDCO_CHECK(start >= 0 && start + length <= size, "[pad] {} elements do not fit at {} in a dim of {}",
              length, start, size);
  OpCall op("pad", {x});
  Shape shape = x.shape();
  shape[along] = size;
  op.choose({numel(shape)}, keep_unless_along, {.attributes = {along}});
  Tensor y = op.output(shape, x.dtype(), x.hidden());
  if (op.runs()) {
    std::memset(y.mutable_raw(), 0, y.local_bytes());
    const auto out_strides = row_major(y.local());
    kernels::copy_strided(
        op.in(0).raw(), row_major(op.in(0).local()),
        static_cast<char*>(y.mutable_raw()) + start * out_strides[along] * size_of(x.dtype()), out_strides,
        op.in(0).local(), size_of(x.dtype()));
  }
  op.record({}, [d = along - x.hidden(), start, length](const Vjp& v) {
    return Tensors{narrow(v.g(), d, start, length)};
  });
  return y;
}

Tensor concat(const std::vector<Tensor>& parts, int dim) {
  REDCO_CHECK(!parts.empty());
  const int along = parts[0].axis(dim);
  OpCall op("concat", Tensors(parts.begin(), parts.end()));
  Shape shape = parts[0].shape();
  shape[along] = 0;
  for (const Tensor& t : parts) shape[along] += t.shape()[along];
  op.choose({numel(shape)},
            [](OpCall::Strategies& s) {
              using Placements = OpCall::Strategies::Placements;
              const size_t n = s.all_inputs().size();
              s.all_replicated();
              bool partial = true;
              for (size_t i = 0; i < n; ++i) {
                const Placement p = s.in(i);
                partial = partial && p.is_partial();
                if (p.is_sharded() && p.dim != s.attribute(0)) s.add(Placements(n, p), {p});
              }
              if (partial) s.add(Placements(n, Placement::partial()), {Placement::partial()});
            },
            {.attributes = {along}});
  Tensor y = op.output(shape, parts[0].dtype(), parts[0].hidden());
  std::vector<i64> sizes;
  i64 at = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    const i64 size = parts[i].shape()[along];
    sizes.push_back(size);
    if (op.runs()) {
      const auto out_strides = row_major(y.local());
      kernels::copy_strided(
          op.in(i).raw(), row_major(op.in(i).local()),
          static_cast<char*>(y.mutable_raw()) + at * out_strides[along] * size_of(y.dtype()), out_strides,
          op.in(i).local(), size_of(y.dtype()));
    }
    at += size;
  }
  op.record({}, [d = along - parts[0].hidden(), sizes](const Vjp& v) {
    Tensors out(sizes.size());
    const Tensor g = v.g();
    i64 at = 0;
    for (size_t i = 0; i < sizes.size(); ++i) {
      if (v.needs(i)) out[i] = narrow(g, d, at, sizes[i]);
      at += sizes[i];
    }
    return out;
  });
  return y;
}

Tensor broadcast_to(const Tensor& x, const Shape& shape, const Layout& wish) {
  REDCO_CHECK(x.rank() == static_cast<int>(shape.size()), "[broadcast_to] cannot broadcast {} to {}",
              describe(x), to_string(shape));
  if (x.shape() == shape) return x;
  i64 repeated = 0;  // bit d: dim d is repeated
  for (size_t d = 0; d < shape.size(); ++d)
    if (x.shape()[d] != shape[d]) repeated |= i64{1} << d;
  OpCall op("broadcast_to", {x});
  op.choose({numel(shape)},
            [](OpCall::Strategies& s) {
              const Placement p = s.in(0), w = s.wish();
              const auto R = Placement::replicated();
              const auto repeats = [&](int d) { return (s.attribute(0) >> d & 1) != 0; };
              if (p.is_sharded() && repeats(p.dim)) {
                s.all_replicated();  // a repeated dim of one element is on one rank only
              } else if (!p.is_partial()) {
                s.add({p}, {p}, true);
              } else if (!w.is_sharded()) {
                s.all_replicated();
                s.add({p}, {p}, true);
              }
              // If `wish` cuts a repeated dim, each rank creates only its own part. A Partial is reduced
              // before repeating, while it is small.
              if (w.is_sharded() && !p.is_sharded()) s.add({repeats(w.dim) ? R : w}, {w});
            },
            {.attributes = {repeated}, .wish = wish});
  Tensor y = op.output(shape, x.dtype(), x.hidden());
  if (op.runs()) {
    auto strides = row_major(op.in(0).local());
    for (size_t d = 0; d < shape.size(); ++d)
      if (x.shape()[d] != shape[d]) strides[d] = 0;
    kernels::copy_strided(op.in(0).raw(), strides, y.mutable_raw(), row_major(y.local()), y.local(),
                          size_of(x.dtype()));
  }
  op.record({}, [from = x.shape(), h = x.hidden()](const Vjp& v) { return Tensors{sum_to(v.g(), from, h)}; });
  return y;
}

Tensor broadcast_to(const Tensor& x, const Shape& visible) {
  REDCO_CHECK(static_cast<int>(visible.size()) >= x.visible(), "[broadcast_to] cannot broadcast {} to {}",
              describe(x), to_string(visible));
  Shape own(x.shape().begin(), x.shape().begin() + x.hidden()), shape = own;
  own.resize(x.hidden() + visible.size() - x.visible(), 1);
  own.insert(own.end(), x.shape().begin() + x.hidden(), x.shape().end());
  shape.insert(shape.end(), visible.begin(), visible.end());
  return broadcast_to(reshape_all(x, own, x.hidden()), shape, Layout{});
}

Tensor cast(const Tensor& x, DType to) {
  if (x.dtype() == to) return x;
  OpCall op("cast", {x});
  op.choose({x.numel()}, [](OpCall::Strategies& s) { s.add({s.in(0)}, {s.in(0)}, true); });
  Tensor y = op.output(x.shape(), to, x.hidden());
  if (op.runs()) {
    const i64 n = y.local_numel();
    if (to == DType::f64) {
      for (i64 i = 0; i < n; ++i) y.mutable_data<double>()[i] = op.in(0).data<float>()[i];
    } else {
      for (i64 i = 0; i < n; ++i) y.mutable_data<float>()[i] = static_cast<float>(op.in(0).data<double>()[i]);
    }
  }
  op.record({}, [from = x.dtype()](const Vjp& v) { return Tensors{cast(v.g(), from)}; });
  return y;
}

i64 head_repeats(i64 n_head, i64 n_kv) { return kv_repeat(n_head, n_kv, Context::current().mesh().mp()); }

Tensor repeat_heads(const Tensor& w, i64 width, i64 f, const Layout& like) {
  const int along = w.hidden();
  if (f == 1) return w;
  OpCall op("repeat_heads", {w});
  Shape shape = w.shape();
  shape[along] *= f;
  op.choose({numel(shape)},
            [](OpCall::Strategies& s) {
              const Placement p = s.in(0), l = s.wish();
              const int along = s.input(0).hidden();
              const i64 width = s.attribute(0), f = s.attribute(1);
              if (p.is_replicated() && l.is_sharded(along)) {
                // Like a query weight: units of one repeated head.
                s.add({p}, {Placement::sharded(along, width)});
              } else if (p.is_replicated() && l.is_sharded() && l.dim < s.input(0).rank()) {
                s.add({l}, {l});
              } else if (p.is_sharded(along) && p.unit % width == 0) {
                s.add({p}, {Placement::sharded(along, p.unit * f)});
              } else if (p.is_sharded(along)) {
                s.all_replicated();
              } else {
                s.add({p}, {p}, true);
              }
            },
            {.attributes = {width, f}, .wish = like});
  Tensor y = op.output(shape, w.dtype(), w.hidden());
  if (op.runs()) {
    i64 outer = 1, inner = width;
    for (int d = 0; d < along; ++d) outer *= y.local()[d];
    for (int d = along + 1; d < w.rank(); ++d) inner *= y.local()[d];
    const i64 heads = y.local()[along] / width, from_heads = op.in(0).local()[along] / width;
    const i64 first = y.range(along).begin / width, from_first = op.in(0).range(along).begin / width;
    const i64 bytes = inner * size_of(w.dtype());
    for (i64 o = 0; o < outer; ++o)
      for (i64 h = 0; h < heads; ++h)
        std::memcpy(static_cast<char*>(y.mutable_raw()) + (o * heads + h) * bytes,
                    static_cast<const char*>(op.in(0).raw()) +
                        (o * from_heads + (first + h) / f - from_first) * bytes,
                    bytes);
  }
  op.record({}, [width, f](const Vjp& v) { return Tensors{sum_heads(v.g(), width, f)}; });
  return y;
}

Tensor sum_heads(const Tensor& g, i64 width, i64 f) {
  const int along = g.hidden();
  OpCall op("sum_heads", {g});
  Shape shape = g.shape();
  shape[along] /= f;
  op.choose({numel(shape)},
            [](OpCall::Strategies& s) {
              const Placement p = s.in(0);
              const int along = s.input(0).hidden();
              const i64 width = s.attribute(0), f = s.attribute(1);
              if (p.is_sharded(along) && p.unit % (width * f) == 0) {
                s.add({p}, {Placement::sharded(along, p.unit / f)});
              } else if (p.is_sharded(along) && p.unit % width == 0) {
                s.add({p}, {Placement::partial()});  // groups may span two ranks: zero fill and sum
              } else if (p.is_sharded(along)) {
                s.all_replicated();
              } else {
                s.add({p}, {p}, true);
              }
            },
            {.attributes = {width, f}});
  Tensor y = op.output(shape, g.dtype(), g.hidden());
  op.flops(static_cast<double>(op.in(0).local_numel()));
  if (op.runs()) {
    i64 outer = 1, inner = width;
    for (int d = 0; d < along; ++d) outer *= y.local()[d];
    for (int d = along + 1; d < g.rank(); ++d) inner *= y.local()[d];
    const i64 heads = op.in(0).local()[along] / width, to_heads = y.local()[along] / width;
    const i64 first = op.in(0).range(along).begin / width, to_first = y.range(along).begin / width;
    std::memset(y.mutable_raw(), 0, y.local_bytes());
    visit_float(g.dtype(), [&](auto zero) {
      using T = decltype(zero);
      for (i64 o = 0; o < outer; ++o)
        for (i64 h = 0; h < heads; ++h)
          kernels::axpy<T>(1, op.in(0).data<T>() + (o * heads + h) * inner,
                           y.mutable_data<T>() + (o * to_heads + (first + h) / f - to_first) * inner, inner);
    });
  }
  op.record({}, [width, f, layout = op.in(0).layout()](const Vjp& v) {
    return Tensors{repeat_heads(v.g(), width, f, layout)};
  });
  return y;
}

}  // namespace redco
