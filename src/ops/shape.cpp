#include "ops/shape.h"

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
  OpCall op("reshape", {x}, Accepts::activations());
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
    REDCO_CHECK(where[order[d]] < 0, "[permute] {}: dim {} is given twice", describe(x),
                order[d] - x.hidden());
    shape[d] = x.shape()[order[d]];
    where[order[d]] = d;
  }
  Layout moved;
  for (Axis a : Context::current().mesh().axes()) {
    const Placement p = x.layout()[a];
    moved[a] = p.is_sharded() ? Placement::sharded(where[p.dim], p.unit) : p;
  }
  OpCall op("permute", {x}, Accepts::activations());
  op.choose({x.numel()}, [](OpCall::Strategies& s) { s.add({s.in(0)}, {s.wish()}, s.in(0).is_replicated()); },
            {.wish = moved});
  Tensor y = op.output(shape, x.dtype(), x.hidden());
  View from = op.in(0);
  const Strides steps = row_major(from.shape);
  from.shape = y.local();
  for (int d = 0; d < x.rank(); ++d) from.strides.push_back(steps[order[d]]);
  op.run(&Kernels::copy, from, y);
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
  OpCall op("narrow", {x}, Accepts::activations());
  Shape shape = x.shape();
  shape[along] = length;
  op.choose({numel(shape)}, keep_unless_along, {.attributes = {along}});
  Tensor y = op.output(shape, x.dtype(), x.hidden());
  op.run(&Kernels::copy, op.in(0).view().narrowed(along, start, length), y);
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
  OpCall op("pad", {x}, Accepts::activations());
  Shape shape = x.shape();
  shape[along] = size;
  op.choose({numel(shape)}, keep_unless_along, {.attributes = {along}});
  Tensor y = op.output(shape, x.dtype(), x.hidden());
  op.run(&Kernels::fill, y, 0);
  op.run(&Kernels::copy, op.in(0), y.view().narrowed(along, start, length));
  op.record({}, [d = along - x.hidden(), start, length](const Vjp& v) {
    return Tensors{narrow(v.g(), d, start, length)};
  });
  return y;
}

Tensor concat(const std::vector<Tensor>& parts, int dim) {
  REDCO_CHECK(!parts.empty(), "[concat] no tensors");
  const int along = parts[0].axis(dim);
  for (const Tensor& t : parts) {
    bool fits =
        t.hidden() == parts[0].hidden() && t.rank() == parts[0].rank() && t.is_float() == parts[0].is_float();
    for (int d = 0; fits && d < t.rank(); ++d) fits = d == along || t.shape()[d] == parts[0].shape()[d];
    REDCO_CHECK(fits, "[concat] {} does not fit {} along dim {}: all other dims must be equal", describe(t),
                describe(parts[0]), dim);
  }
  const Tensors inputs(parts.begin(), parts.end());
  const DType type = joint_type(inputs);
  OpCall op("concat", inputs, type == DType::bf16 ? Accepts::activations() : Accepts());
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
  Tensor y = op.output(shape, type, parts[0].hidden());
  std::vector<i64> sizes;
  i64 at = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    const i64 size = parts[i].shape()[along];
    sizes.push_back(size);
    op.run(&Kernels::copy, op.in(i), y.view().narrowed(along, at, size));
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
  OpCall op("broadcast_to", {x}, Accepts::activations());
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
  View from = op.in(0);
  from.strides = from.steps();
  from.shape = y.local();
  for (size_t d = 0; d < shape.size(); ++d)
    if (x.shape()[d] != shape[d]) from.strides[d] = 0;
  op.run(&Kernels::copy, from, y);
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
  OpCall op("cast", {x}, {0});
  op.choose({x.numel()},
            [](OpCall::Strategies& s) {
              const bool rounds = s.attribute(0) != 0;
              if (s.in(0).is_partial() && rounds) {
                s.all_replicated();
              } else {
                s.add({s.in(0)}, {s.in(0)}, true);
              }
            },
            {.attributes = {to == DType::i32}});
  Tensor y = op.output(x.shape(), to, x.hidden());
  if (y.dtype() == op.in(0).dtype())
    op.run(&Kernels::copy, op.in(0), y);
  else
    op.run(&Kernels::cast, op.in(0), y);
  if (!x.is_float() || to == DType::i32) {
    op.no_gradient();
    return y;
  }
  op.record({}, [from = x.dtype()](const Vjp& v) { return Tensors{cast(v.g(), from)}; });
  return y;
}

Tensor to_float(const Tensor& ids, DType to) {
  REDCO_CHECK(ids.dtype() == DType::i32 && to != DType::i32, "[to_float] {} to {}", describe(ids),
              name_of(to));
  return cast(ids, to);
}

Tensor to_sum_type(const Tensor& x) {
  return x.defined() && x.dtype() == DType::bf16 ? cast(x, DType::f32) : x;
}

i64 head_repeats(i64 n_head, i64 n_kv) { return kv_repeat(n_head, n_kv, Context::current().mesh().mp()); }

namespace {

// Whether the ranks of an axis before (or after) the one that is chosen for have different parts of a dim of
// the first input, in units that are not multiples of `unit`.
bool cut_before(const OpCall::Strategies& s, int dim, i64 unit) {
  const Mesh& mesh = Context::current().mesh();
  for (const Axis a : mesh.axes()) {
    if (a == s.axis()) return false;
    const Placement& p = s.input(0).layout()[a];
    if (mesh.size(a) > 1 && p.is_sharded(dim) && p.unit % unit != 0) return true;
  }
  return false;
}
bool cut_after(const OpCall::Strategies& s, int dim) {
  const Mesh& mesh = Context::current().mesh();
  for (const Axis a : mesh.axes())
    if (a.index() > s.axis().index() && mesh.size(a) > 1 && s.input(0).layout()[a].is_sharded(dim))
      return true;
  return false;
}

}  // namespace

// A rank makes its part of the result from its part of the input, so both must be cut at the same heads. A
// later axis cuts what the earlier ones leave: the earlier ones must cut input and result alike, or else the
// later one can't cut both.
Tensor repeat_heads(const Tensor& w, i64 width, i64 f, const Layout& like) {
  const int along = w.hidden();
  if (f == 1) return w;
  OpCall op("repeat_heads", {w}, {0});
  Shape shape = w.shape();
  shape[along] *= f;
  op.choose({numel(shape)},
            [](OpCall::Strategies& s) {
              const Placement p = s.in(0), l = s.wish();
              const int along = s.input(0).hidden();
              const i64 width = s.attribute(0), f = s.attribute(1);
              if (p.is_replicated() && l.is_sharded(along) && cut_after(s, along)) {
                s.add({p}, {p}, true);  // a later axis has other heads of the input than of this cut
              } else if (p.is_replicated() && l.is_sharded(along)) {
                s.add({p}, {Placement::sharded(along, l.unit % width == 0 ? i64{l.unit} : width)});
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
  const i64 heads = y.local()[along] / width;
  const i64 first = y.range(along).begin / width, from_first = op.in(0).range(along).begin / width;
  for (i64 h = 0; h < heads; ++h)
    op.run(&Kernels::copy, op.in(0).view().narrowed(along, ((first + h) / f - from_first) * width, width),
           y.view().narrowed(along, h * width, width));
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
              if (p.is_sharded(along) && p.unit % (width * f) == 0 && !cut_before(s, along, width * f)) {
                s.add({p}, {Placement::sharded(along, p.unit / f)});
              } else if (p.is_sharded(along) && p.unit % width == 0) {
                // Groups may span two ranks, or the result isn't cut by an earlier axis: zero fill and sum.
                s.add({p}, {Placement::partial()});
              } else if (p.is_sharded(along)) {
                s.all_replicated();
              } else {
                s.add({p}, {p}, true);
              }
            },
            {.attributes = {width, f}});
  Tensor y = op.output(shape, g.dtype(), g.hidden());
  op.flops(static_cast<double>(op.in(0).local_numel()));
  const View from = op.in(0), to = y;
  i64 outer = 1, inner = width;
  for (int d = 0; d < along; ++d) outer *= to.shape[d];
  for (int d = along + 1; d < g.rank(); ++d) inner *= to.shape[d];
  const i64 heads = from.shape[along] / width, to_heads = to.shape[along] / width;
  const i64 first = op.in(0).range(along).begin / width, to_first = y.range(along).begin / width;
  op.run(&Kernels::fill, to, 0);
  for (i64 o = 0; o < outer; ++o)
    for (i64 h = 0; h < heads; ++h)
      op.run(&Kernels::axpy, 1, from.flat((o * heads + h) * inner, inner),
             to.flat((o * to_heads + (first + h) / f - to_first) * inner, inner));
  op.record({}, [width, f, layout = op.in(0).layout()](const Vjp& v) {
    return Tensors{repeat_heads(v.g(), width, f, layout)};
  });
  return y;
}

}  // namespace redco
