#include "ops/redistribute.h"

#include <numeric>

#include "base/error.h"
#include "ops/gather_ahead.h"
#include "shard/state_dim.h"

namespace redco {

namespace {

using Offsets = Shape;  // an index in each dim

// The box of a row-major view that starts at `at`.
View box_of(const View& v, const Offsets& at, const Shape& box) {
  View out = v;
  out.strides = v.steps();
  out.shape = box;
  i64 first = 0;
  for (size_t d = 0; d < box.size(); ++d) first += at[d] * out.strides[d];
  out.data = v.data.plus(bytes_of(v.dtype, first));
  return out;
}

void copy_box(const View& from, const View& to) {
  if (to.numel() > 0) Context::current().run(&Kernels::copy, from, to);
}

// The bytes of a packed box, and a packed box at `first` (in elements in memory) of a buffer.
i64 bytes_of_box(const Tensor& t, const Shape& box) {
  return bytes_of(t.dtype(), stored_numel(t.dtype(), box));
}
View packed_box(const Tensor& buffer, i64 first, const Shape& box) {
  return buffer.view().flat(first, stored_numel(buffer.dtype(), box)).reshaped(box);
}

// A tensor from the viewpoint of one axis. `whole` is what the ranks of the axis hold together (already cut
// by the other axes, unless a later one cuts the same dim); each rank has a range of one dim.
struct AxisView {
  Shape whole;
  int n, me;
};

AxisView view_on(const Tensor& t, Axis axis) {
  const Context& c = Context::current();
  AxisView v{t.local(), c.mesh().size(axis), c.coord().at(axis)};
  const Placement& p = t.layout()[axis];
  if (p.is_sharded()) {
    // Size of the dim before this axis cuts it: what earlier axes leave of the global dim.
    Layout earlier;
    for (Axis a : c.mesh().axes())
      if (a.index() < axis.index()) earlier[a] = t.layout()[a];
    v.whole[p.dim] = local_range(t.shape(), earlier, c.mesh(), c.coord(), p.dim).size();
  }
  return v;
}

Shape cut(const AxisView& v, const Placement& p, int index) {
  Shape s = v.whole;
  if (p.is_sharded()) s[p.dim] = shard_range(v.whole[p.dim], p.unit, v.n, index).size();
  return s;
}
Range range_in(const AxisView& v, const Placement& p, int dim, int index) {
  if (p.is_sharded(dim)) return shard_range(v.whole[dim], p.unit, v.n, index);
  return {0, v.whole[dim]};
}

Layout changed(Layout l, Axis axis, const Placement& p) {
  l[axis] = p;
  return l;
}

// P -> R, out of place, because views may share the source.
Tensor all_reduce(const Tensor& t, Axis axis) {
  Context& c = Context::current();
  Tensor out(t.shape(), t.dtype(), changed(t.layout(), axis, Placement::replicated()), t.hidden());
  c.account(Collective::all_reduce, axis, t.local_bytes());
  c.run(&Kernels::copy, t, out);
  Collectives(axis).all_reduce(out);
  return out;
}

// S -> S': rank r sends to rank s the intersection of its box with that of s.
Tensor all_to_all(const Tensor& t, Axis axis, const Placement& to) {
  Context& c = Context::current();
  const AxisView v = view_on(t, axis);
  const Placement& from = t.layout()[axis];
  Tensor out(t.shape(), t.dtype(), changed(t.layout(), axis, to), t.hidden());
  const int n = v.n, me = v.me, dims = t.rank();
  std::vector<i64> send_counts(n), recv_counts(n);
  // The box that src holds and dst needs, in coordinates of `whole`.
  auto box = [&](int src, int dst, Offsets& at, Shape& size) {
    at.assign(dims, 0);
    size = v.whole;
    for (int d = 0; d < dims; ++d) {
      const Range a = range_in(v, from, d, src), b = range_in(v, to, d, dst);
      at[d] = std::max(a.begin, b.begin);
      size[d] = std::max<i64>(0, std::min(a.end, b.end) - at[d]);
    }
  };
  Offsets at;
  Shape size;
  i64 send_total = 0, recv_total = 0;
  for (int r = 0; r < n; ++r) {
    box(me, r, at, size);
    send_counts[r] = bytes_of_box(t, size);
    send_total += stored_numel(t.dtype(), size);
    box(r, me, at, size);
    recv_counts[r] = bytes_of_box(t, size);
    recv_total += stored_numel(t.dtype(), size);
  }
  c.account(Collective::all_to_all, axis, t.local_bytes());
  const Tensor send({send_total}, t.dtype(), {}), recv({recv_total}, t.dtype(), {});
  const auto offset_in = [&](Offsets p, const Placement& pl, int index) {
    for (int d = 0; d < dims; ++d) p[d] -= range_in(v, pl, d, index).begin;
    return p;
  };
  i64 first = 0;
  for (int r = 0; r < n; ++r) {
    box(me, r, at, size);
    copy_box(box_of(t, offset_in(at, from, me), size), packed_box(send, first, size));
    first += stored_numel(t.dtype(), size);
  }
  Collectives(axis).all_to_all(send, send_counts, recv, recv_counts);
  first = 0;
  for (int r = 0; r < n; ++r) {
    box(r, me, at, size);
    copy_box(packed_box(recv, first, size), box_of(out, offset_in(at, to, me), size));
    first += stored_numel(t.dtype(), size);
  }
  return out;
}

// The bytes of each rank's part of t.
std::vector<i64> block_bytes(const Tensor& t, Axis axis) {
  const AxisView v = view_on(t, axis);
  std::vector<i64> bytes(v.n);
  for (int r = 0; r < v.n; ++r) bytes[r] = bytes_of_box(t, cut(v, t.layout()[axis], r));
  return bytes;
}

// S(d) -> R.
Tensor all_gather(const Tensor& t, Axis axis) {
  Context& c = Context::current();
  const AxisView v = view_on(t, axis);
  const Placement& from = t.layout()[axis];
  Tensor out(t.shape(), t.dtype(), changed(t.layout(), axis, Placement::replicated()), t.hidden());
  c.account(Collective::all_gather, axis, out.local_bytes());
  const std::vector<i64> counts = block_bytes(t, axis);
  // Blocks of the outermost dims arrive in place; others are gathered in a buffer and interleaved.
  i64 outer = 1;
  for (int d = 0; d < from.dim; ++d) outer *= v.whole[d];
  if (outer == 1) {
    Collectives(axis).all_gather(t, out, counts);
    return out;
  }
  const Tensor flat({out.local_stored()}, t.dtype(), {});
  Collectives(axis).all_gather(t, flat, counts);
  i64 first = 0;
  for (int r = 0; r < v.n; ++r) {
    const Shape s = cut(v, from, r);
    Offsets at(t.rank(), 0);
    at[from.dim] = range_in(v, from, from.dim, r).begin;
    copy_box(packed_box(flat, first, s), box_of(out, at, s));
    first += stored_numel(t.dtype(), s);
  }
  return out;
}

// P -> S(d).
Tensor reduce_scatter(const Tensor& t, Axis axis, const Placement& to) {
  Context& c = Context::current();
  const AxisView v = view_on(t, axis);
  Tensor out(t.shape(), t.dtype(), changed(t.layout(), axis, to), t.hidden());
  c.account(Collective::reduce_scatter, axis, t.local_bytes());
  std::vector<i64> counts(v.n);
  for (int r = 0; r < v.n; ++r) counts[r] = numel(cut(v, to, r));
  i64 outer = 1;
  for (int d = 0; d < to.dim; ++d) outer *= v.whole[d];
  Tensor packed = t;
  if (outer != 1) {
    packed = Tensor({t.local_numel()}, t.dtype(), {});
    i64 first = 0;
    for (int r = 0; r < v.n; ++r) {
      const Shape s = cut(v, to, r);
      Offsets at(t.rank(), 0);
      at[to.dim] = range_in(v, to, to.dim, r).begin;
      copy_box(box_of(t, at, s), packed.view().flat(first, numel(s)).reshaped(s));
      first += numel(s);
    }
  }
  Collectives(axis).reduce_scatter(packed, out, counts);
  return out;
}

// R -> S(d): this rank keeps its slice.
Tensor slice(const Tensor& t, Axis axis, const Placement& to) {
  const AxisView v = view_on(t, axis);
  Tensor out(t.shape(), t.dtype(), changed(t.layout(), axis, to), t.hidden());
  Offsets at(t.rank(), 0);
  at[to.dim] = range_in(v, to, to.dim, v.me).begin;
  copy_box(box_of(t, at, out.local()), out);
  return out;
}

// R -> P: the first rank of the axis keeps the value, the others hold zeros (exact; dividing by n would not
// be).
// S -> P: each rank fills the rest with zeros.
Tensor spread(const Tensor& t, Axis axis) {
  if (t.dtype() == DType::bf16) return spread(widened(t), axis);  // sums are fp32
  const AxisView v = view_on(t, axis);
  const Placement& from = t.layout()[axis];
  Tensor out(t.shape(), t.dtype(), changed(t.layout(), axis, Placement::partial()), t.hidden());
  if (from.is_replicated() && v.me == 0) {
    copy_box(t, out);
    return out;
  }
  Context::current().run(&Kernels::fill, out, 0);
  if (from.is_sharded()) {
    Offsets at(t.rank(), 0);
    at[from.dim] = range_in(v, from, from.dim, v.me).begin;
    copy_box(t, box_of(out, at, t.local()));
  }
  return out;
}

// Whether the axis cuts t at the same borders under both placements. If earlier axes cut the dim, this one
// cuts each of their shards; then the answer is true only if it holds for all of them, so that it is equal on
// every rank.
bool same_borders(const Tensor& t, Axis axis, const Placement& a, const Placement& b) {
  const Mesh& mesh = Context::current().mesh();
  const int n = mesh.size(axis);
  if (!a.is_sharded()) return same_cut(t.shape(), a, b, n);
  SmallVector<i64, 4> parts = {t.shape()[a.dim]};  // the sizes of the shards that earlier axes leave
  for (Axis e : mesh.axes()) {
    if (e.index() >= axis.index() || !t.layout()[e].is_sharded(a.dim)) continue;
    SmallVector<i64, 4> cut;
    for (i64 size : parts)
      for (int i = 0; i < mesh.size(e); ++i) {
        const i64 part = shard_range(size, t.layout()[e].unit, mesh.size(e), i).size();
        if (std::find(cut.begin(), cut.end(), part) == cut.end()) cut.push_back(part);
      }
    parts = cut;
  }
  Shape part = t.shape();
  for (i64 size : parts) {
    part[a.dim] = size;
    if (!same_cut(part, a, b, n)) return false;
  }
  return true;
}

// Whether recompute() keeps the result. It keeps sums, and repeats what only moves parts of a tensor: an
// all-gather's result is larger than its source.
bool is_kept(const Placement& from, const Placement& to) { return from.is_partial() && !to.is_partial(); }

Tensor move(const Tensor& t, Axis axis, const Placement& to) {
  const Placement& from = t.layout()[axis];
  if (to.is_partial()) return spread(t, axis);
  if (from.is_replicated()) return slice(t, axis, to);
  if (from.is_partial()) return to.is_replicated() ? all_reduce(t, axis) : reduce_scatter(t, axis, to);
  return to.is_replicated() ? all_gather(t, axis) : all_to_all(t, axis, to);
}

}  // namespace

Tensor redistribute(const Tensor& t, Axis axis, const Placement& to) {
  Context& c = Context::current();
  const Placement from = t.layout()[axis];
  if (from == to) return t;
  REDCO_CHECK(!to.is_partial() || t.is_float(), "ids cannot be Partial");
  REDCO_CHECK(keeps_groups(t, axis, to), "{} cuts groups of {}", to_string(to), describe(t));
  const int n = c.mesh().size(axis);
  if (n == 1 || same_borders(t, axis, from, to)) return t.with_placement(axis, to);  // only the name changes
  // To change the cut of a dim that later axes cut too, their cuts are undone first, the last one first.
  for (int i = c.mesh().axes().size() - 1; i > axis.index(); --i) {
    const Placement later = t.layout()[Axis(i)];
    if (later.is_sharded() && (from.is_sharded(later.dim) || to.is_sharded(later.dim)))
      return redistribute(redistribute(redistribute(t, Axis(i), Placement::replicated()), axis, to), Axis(i),
                          later);
  }

  CollectiveLog* log = is_kept(from, to) ? c.collective_log : nullptr;
  Tensor moved;
  if (!log || !log->take(t, &moved)) moved = move(t, axis, to);
  if (log) log->keep(moved);
  if (from.is_partial() && to.is_replicated()) {
    t.promote(moved);
    return t;
  }
  return t.with_storage_of(moved);
}

Tensor gathered(const Tensor& t) {
  if (!t.defined() || !t.is_gathered_on_use()) return t;
  Context& c = Context::current();
  const Restore<CollectiveLog*> not_kept(c.collective_log, nullptr);
  return c.gather_ahead ? c.gather_ahead->take(t) : redistribute(t, t.used_layout());
}

std::optional<Gathering> start_gathering(const Tensor& t) {
  Context& c = Context::current();
  const Mesh& mesh = c.mesh();
  const Layout to = t.used_layout();
  std::optional<Axis> axis;
  for (Axis a : mesh.axes()) {
    const Placement& from = t.layout()[a];
    if (mesh.size(a) == 1 || (!axis && from == to[a])) continue;
    // A second axis, or a later one that cuts the rows of the first.
    if (axis && (!(from == to[a]) || from.is_sharded(0))) return {};
    if (!from.is_sharded(0)) return {};
    axis = a;
  }
  if (!axis) return {};
  Gathering g{*axis, Tensor(t.shape(), t.dtype(), to, t.hidden()), {}};
  g.pending = Collectives(*axis).start_all_gather(t, g.whole, block_bytes(t, *axis));
  return g;
}

Tensor widened(const Tensor& t) {
  if (!t.defined() || !is_storage_type(t.dtype())) return t;
  const Tensor wide(t.shape(), DType::f32, t.layout(), t.hidden());
  Context::current().run(&Kernels::cast, t, wide);
  return wide;
}

void gather_rows_in_place(const std::vector<RowParts>& tensors) {
  Context& c = Context::current();
  const Mesh& mesh = c.mesh();
  // The last axis first: it cuts what the others leave.
  for (int k = mesh.axes().size() - 1; k >= 0; --k) {
    const Axis a(k);
    if (mesh.size(a) == 1) continue;
    Views send;
    std::vector<Views> receive(mesh.size(a));
    i64 bytes = 0;
    for (const auto& [whole, parts] : tensors) {
      if (parts[a] == whole.layout()[a]) continue;
      const int dim = state_dim(whole.layout(), whole.shape(), mesh);
      REDCO_CHECK(parts[a].is_sharded(dim), "parts of {}: {}", describe(whole), to_string(parts, mesh));
      Layout before = parts;  // without this axis and those after it
      for (int later = k; later < mesh.axes().size(); ++later)
        before[Axis(later)] = whole.layout()[Axis(later)];
      const Range all = local_range(whole.shape(), before, mesh, c.coord(), dim);
      const i64 first = all.begin - whole.range(dim).begin;
      for (int r = 0; r < mesh.size(a); ++r) {
        const Range of_rank = shard_range(all.size(), parts[a].unit, mesh.size(a), r);
        const i64 from = elements_before(whole.local(), dim, first + of_rank.begin);
        const i64 to = elements_before(whole.local(), dim, first + of_rank.end);
        const View place = whole.view().flat(from, to - from);
        receive[r].push_back(place);
        if (r == c.coord().at(a)) send.push_back(place);
        bytes += place.bytes();
      }
    }
    if (send.empty()) continue;
    c.account(Collective::all_gather, a, bytes);
    Collectives(a).start_all_gather(send, receive).wait();
  }
}

void reduce_inside(const Tensor& t, Axis axis, bool max) {
  Context& c = Context::current();
  if (c.mesh().size(axis) == 1) return;
  CollectiveLog* const log = c.collective_log;
  Tensor known;
  if (log && log->take(t, &known)) {
    c.run(&Kernels::copy, known, t);
  } else {
    c.account(Collective::all_reduce, axis, t.local_bytes());
    Collectives(axis).all_reduce(t, max);
  }
  if (log) log->keep(t);
}

Tensor redistribute(const Tensor& t, const Layout& to) {
  Tensor out = t;
  for (Axis a : Context::current().mesh().axes()) out = redistribute(out, a, to[a]);
  return out;
}

Tensor without_partials(const Tensor& t) {
  Tensor out = t;
  for (Axis a : Context::current().mesh().axes())
    if (out.layout()[a].is_partial()) out = redistribute(out, a, Placement::replicated());
  return out;
}

bool same_bytes_in(const Layout& a, const Layout& b) {
  const Mesh& mesh = Context::current().mesh();
  for (Axis axis : mesh.axes())
    if (mesh.size(axis) > 1 && !(a[axis] == b[axis])) return false;
  return true;
}

bool is_partial_on(AxisRole role, const Tensor& t) {
  const Mesh& mesh = Context::current().mesh();
  for (Axis a : mesh.axes())
    if (t.layout()[a].is_partial() && mesh.role(a) == role) return true;
  return false;
}

Tensor to_replicated(const Tensor& t) { return redistribute(t, Layout{}); }

bool keeps_groups(const Tensor& t, Axis axis, const Placement& p) {
  const i64 group = group_of(t.dtype());
  if (group == 1 || !p.is_sharded(t.rank() - 1) || p.unit % group == 0) return true;
  return same_borders(t, axis, p, Placement::sharded(p.dim, std::lcm(p.unit, group)));
}

double move_cost(const Tensor& t, Axis axis, const Placement& to) {
  const int n = Context::current().mesh().size(axis);
  const Placement& from = t.layout()[axis];
  if (n == 1 || from.is_replicated() || to.is_partial() || same_borders(t, axis, from, to)) return 0;
  const double bytes = static_cast<double>(bytes_of(t.dtype(), stored_numel(t.dtype(), t.shape())));
  if (from.is_partial()) return to.is_replicated() ? 2 * bytes : bytes;
  return to.is_replicated() ? bytes : bytes / n;
}

}  // namespace redco
