#include "ops/redistribute.h"

#include "base/error.h"
#include "kernels/elementwise.h"

namespace redco {

Strides row_major(const Shape& s) {
  Strides out(s.size());
  i64 n = 1;
  for (int d = static_cast<int>(s.size()) - 1; d >= 0; --d) {
    out[d] = n;
    n *= s[d];
  }
  return out;
}

namespace {

using kernels::copy_strided;
using Offsets = Shape;  // an index in each dim

// Copies the box that starts at `from_at` in `from` (shape from_shape) to `to_at` in `to`.
void copy_box(const void* from, const Shape& from_shape, const Offsets& from_at, void* to,
              const Shape& to_shape, const Offsets& to_at, const Shape& box, i64 elem) {
  if (numel(box) == 0) return;
  const auto fs = row_major(from_shape), ts = row_major(to_shape);
  i64 f = 0, t = 0;
  for (size_t d = 0; d < box.size(); ++d) {
    f += from_at[d] * fs[d];
    t += to_at[d] * ts[d];
  }
  copy_strided(static_cast<const char*>(from) + f * elem, fs, static_cast<char*>(to) + t * elem, ts, box,
               elem);
}

// A tensor from the viewpoint of one axis. `whole` is what the ranks of the axis hold together (already cut
// by the other axes, unless a later one cuts the same dim); each rank has a range of one dim.
struct View {
  Shape whole;
  int n, me;
};

View view_on(const Tensor& t, Axis axis) {
  const Context& c = Context::current();
  View v{t.local(), c.mesh().size(axis), c.coord().at(axis)};
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

Shape cut(const View& v, const Placement& p, int index) {
  Shape s = v.whole;
  if (p.is_sharded()) s[p.dim] = shard_range(v.whole[p.dim], p.unit, v.n, index).size();
  return s;
}
Range range_in(const View& v, const Placement& p, int dim, int index) {
  if (p.is_sharded(dim)) return shard_range(v.whole[dim], p.unit, v.n, index);
  return {0, v.whole[dim]};
}

Layout changed(Layout l, Axis axis, const Placement& p) {
  l[axis] = p;
  return l;
}

// Data that is moved but not added is treated as bytes, so elements may have any size.
std::byte* bytes(const Storage& s) { return static_cast<std::byte*>(s.data()); }

// P -> R, out of place, because views may share the source.
Tensor all_reduce(const Tensor& t, Axis axis) {
  Context& c = Context::current();
  Tensor out(t.shape(), t.dtype(), changed(t.layout(), axis, Placement::replicated()), t.hidden());
  c.account(Collective::all_reduce, axis, t.local_bytes());
  if (!out.is_meta()) std::memcpy(out.mutable_raw(), t.raw(), t.local_bytes());
  visit_float(t.dtype(), [&](auto zero) {
    using T = decltype(zero);
    c.group(axis).all_reduce(out.mutable_data<T>(), out.local_numel());
  });
  return out;
}

// S -> S': rank r sends to rank s the intersection of its box with that of s.
Tensor all_to_all(const Tensor& t, Axis axis, const Placement& to) {
  Context& c = Context::current();
  const View v = view_on(t, axis);
  const Placement& from = t.layout()[axis];
  Tensor out(t.shape(), t.dtype(), changed(t.layout(), axis, to), t.hidden());
  const int n = v.n, me = v.me, dims = t.rank();
  const i64 elem = size_of(t.dtype());
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
    send_total += send_counts[r] = numel(size) * elem;
    box(r, me, at, size);
    recv_total += recv_counts[r] = numel(size) * elem;
  }
  c.account(Collective::all_to_all, axis, t.local_bytes());
  const bool meta = out.is_meta();
  const Storage send(c.shared_arena(), send_total), recv(c.shared_arena(), recv_total);
  auto offset_in = [&](Offsets p, const Placement& pl, int index) {
    for (int d = 0; d < dims; ++d) p[d] -= range_in(v, pl, d, index).begin;
    return p;
  };
  if (!meta) {
    char* p = static_cast<char*>(send.data());
    for (int r = 0; r < n; ++r) {
      box(me, r, at, size);
      copy_box(t.raw(), t.local(), offset_in(at, from, me), p, size, Offsets(dims, 0), size, elem);
      p += send_counts[r];
    }
  }
  c.group(axis).all_to_all<std::byte>(bytes(send), send_counts, bytes(recv), recv_counts);
  if (!meta) {
    const char* p = static_cast<const char*>(recv.data());
    for (int r = 0; r < n; ++r) {
      box(r, me, at, size);
      copy_box(p, size, Offsets(dims, 0), out.mutable_raw(), out.local(), offset_in(at, to, me), size, elem);
      p += numel(size) * elem;
    }
  }
  return out;
}

// S(d) -> R.
Tensor all_gather(const Tensor& t, Axis axis) {
  Context& c = Context::current();
  const View v = view_on(t, axis);
  const Placement& from = t.layout()[axis];
  Tensor out(t.shape(), t.dtype(), changed(t.layout(), axis, Placement::replicated()), t.hidden());
  c.account(Collective::all_gather, axis, out.local_bytes());
  const i64 elem = size_of(t.dtype());
  std::vector<i64> counts(v.n);
  for (int r = 0; r < v.n; ++r) counts[r] = numel(cut(v, from, r)) * elem;
  // Blocks of the outermost dims arrive in place; others are gathered in a buffer and interleaved.
  i64 outer = 1;
  for (int d = 0; d < from.dim; ++d) outer *= v.whole[d];
  if (outer == 1) {
    c.group(axis).all_gather<std::byte>(bytes(*t.storage()), bytes(*out.storage()), counts);
    return out;
  }
  const Storage flat(c.shared_arena(), out.local_bytes());
  c.group(axis).all_gather<std::byte>(bytes(*t.storage()), bytes(flat), counts);
  if (!out.is_meta()) {
    const char* p = static_cast<const char*>(flat.data());
    for (int r = 0; r < v.n; ++r) {
      const Shape s = cut(v, from, r);
      Offsets at(t.rank(), 0);
      at[from.dim] = range_in(v, from, from.dim, r).begin;
      copy_box(p, s, Offsets(t.rank(), 0), out.mutable_raw(), out.local(), at, s, elem);
      p += numel(s) * elem;
    }
  }
  return out;
}

// P -> S(d).
Tensor reduce_scatter(const Tensor& t, Axis axis, const Placement& to) {
  Context& c = Context::current();
  const View v = view_on(t, axis);
  Tensor out(t.shape(), t.dtype(), changed(t.layout(), axis, to), t.hidden());
  c.account(Collective::reduce_scatter, axis, t.local_bytes());
  const i64 elem = size_of(t.dtype());
  std::vector<i64> counts(v.n);
  for (int r = 0; r < v.n; ++r) counts[r] = numel(cut(v, to, r));
  i64 outer = 1;
  for (int d = 0; d < to.dim; ++d) outer *= v.whole[d];
  Tensor packed = t;
  if (outer != 1) {
    packed = Tensor({t.local_numel()}, t.dtype(), {});
    if (!out.is_meta()) {
      char* p = static_cast<char*>(packed.mutable_raw());
      for (int r = 0; r < v.n; ++r) {
        const Shape s = cut(v, to, r);
        Offsets at(t.rank(), 0);
        at[to.dim] = range_in(v, to, to.dim, r).begin;
        copy_box(t.raw(), t.local(), at, p, s, Offsets(t.rank(), 0), s, elem);
        p += numel(s) * elem;
      }
    }
  }
  visit_float(t.dtype(), [&](auto zero) {
    using T = decltype(zero);
    c.group(axis).reduce_scatter(packed.data<T>(), out.mutable_data<T>(), counts);
  });
  return out;
}

// R -> S(d): this rank keeps its slice.
Tensor slice(const Tensor& t, Axis axis, const Placement& to) {
  const View v = view_on(t, axis);
  Tensor out(t.shape(), t.dtype(), changed(t.layout(), axis, to), t.hidden());
  if (out.is_meta()) return out;
  Offsets at(t.rank(), 0);
  at[to.dim] = range_in(v, to, to.dim, v.me).begin;
  copy_box(t.raw(), t.local(), at, out.mutable_raw(), out.local(), Offsets(t.rank(), 0), out.local(),
           size_of(t.dtype()));
  return out;
}

// R -> P: the first rank of the axis keeps the value, the others hold zeros (exact; dividing by n would not
// be).
// S -> P: each rank fills the rest with zeros.
Tensor spread(const Tensor& t, Axis axis) {
  const View v = view_on(t, axis);
  const Placement& from = t.layout()[axis];
  Tensor out(t.shape(), t.dtype(), changed(t.layout(), axis, Placement::partial()), t.hidden());
  if (out.is_meta()) return out;
  if (from.is_replicated() && v.me == 0) {
    std::memcpy(out.mutable_raw(), t.raw(), t.local_bytes());
    return out;
  }
  std::memset(out.mutable_raw(), 0, out.local_bytes());
  if (from.is_sharded()) {
    Offsets at(t.rank(), 0);
    at[from.dim] = range_in(v, from, from.dim, v.me).begin;
    copy_box(t.raw(), t.local(), Offsets(t.rank(), 0), out.mutable_raw(), out.local(), at, t.local(),
             size_of(t.dtype()));
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

bool talks(const Placement& from, const Placement& to) {
  return !from.is_replicated() && !to.is_partial() && !(from == to);
}

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
  const int n = c.mesh().size(axis);
  if (n == 1 || same_borders(t, axis, from, to)) {  // only the name changes
    Layout l = t.layout();
    l[axis] = to;
    return t.with_storage_of(Tensor::view(t, t.shape(), l, t.hidden()));
  }
  // To change the cut of a dim that later axes cut too, their cuts are undone first, the last one first.
  for (int i = c.mesh().axes().size() - 1; i > axis.index(); --i) {
    const Placement later = t.layout()[Axis(i)];
    if (later.is_sharded() && (from.is_sharded(later.dim) || to.is_sharded(later.dim)))
      return redistribute(redistribute(redistribute(t, Axis(i), Placement::replicated()), axis, to), Axis(i),
                          later);
  }

  CollectiveLog* log = talks(from, to) ? c.collective_log : nullptr;
  Tensor moved;
  if (!log || !log->take(t, &moved)) moved = move(t, axis, to);
  if (log) log->keep(moved);
  if (from.is_partial() && to.is_replicated()) {
    t.promote(moved);
    return t;
  }
  return t.with_storage_of(moved);
}

void reduce_inside(const Tensor& t, Axis axis, bool max) {
  Context& c = Context::current();
  if (c.mesh().size(axis) == 1) return;
  CollectiveLog* const log = c.collective_log;
  Tensor known;
  if (log && log->take(t, &known)) {
    if (!t.is_meta()) std::memcpy(t.mutable_raw(), known.raw(), t.local_bytes());
  } else {
    c.account(Collective::all_reduce, axis, t.local_bytes());
    visit_float(t.dtype(), [&](auto zero) {
      using T = decltype(zero);
      if (max) {
        c.group(axis).all_reduce_max<T>(t.mutable_data<T>(), t.local_numel());
      } else {
        c.group(axis).all_reduce<T>(t.mutable_data<T>(), t.local_numel());
      }
    });
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

bool is_partial_on(AxisRole role, const Tensor& t) {
  const Mesh& mesh = Context::current().mesh();
  for (Axis a : mesh.axes())
    if (t.layout()[a].is_partial() && mesh.role(a) == role) return true;
  return false;
}

Tensor to_replicated(const Tensor& t) { return redistribute(t, Layout{}); }

double move_cost(const Tensor& t, Axis axis, const Placement& to) {
  const int n = Context::current().mesh().size(axis);
  const Placement& from = t.layout()[axis];
  if (n == 1 || from.is_replicated() || to.is_partial() || same_borders(t, axis, from, to)) return 0;
  const double bytes = static_cast<double>(t.numel()) * size_of(t.dtype());
  if (from.is_partial()) return to.is_replicated() ? 2 * bytes : bytes;
  return to.is_replicated() ? bytes : bytes / n;
}

}  // namespace redco
