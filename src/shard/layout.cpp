#include "shard/layout.h"

#include "base/error.h"
#include "shard/state_dim.h"
#include "shard/state_sharding.h"

namespace redco {

Placement Placement::sharded(int dim, i64 unit) {
  REDCO_CHECK(dim >= 0 && dim < 128 && unit > 0 && unit < (i64{1} << 31), "dim {}, unit {}", dim, unit);
  return {Kind::sharded, static_cast<std::int8_t>(dim), static_cast<i32>(unit)};
}

Mesh::Mesh(int dp, int mp, std::initializer_list<MeshAxis> more) : n_axes_(2) {
  axes_[Axis::mp.index()] = {"mp", mp, AxisRole::model};
  axes_[Axis::dp.index()] = {"dp", dp, AxisRole::data};
  for (const MeshAxis& a : more) {
    REDCO_CHECK(n_axes_ < kMaxAxes, "a mesh has at most {} axes", kMaxAxes);
    axes_[n_axes_++] = a;
  }
  for (int i = n_axes_; i < kMaxAxes; ++i) axes_[i] = {"", 1, AxisRole::model};
}

int Mesh::ranks() const {
  int n = 1;
  for (Axis a : axes()) n *= size(a);
  return n;
}

int Mesh::ranks(AxisRole of) const {
  int n = 1;
  for (Axis a : axes())
    if (role(a) == of) n *= size(a);
  return n;
}

int Mesh::stride(Axis a) const {
  int n = 1;
  for (int i = 0; i < a.index(); ++i) n *= axes_[i].size;
  return n;
}

Coord coord_of(const Mesh& m, int rank) {
  Coord c;
  for (Axis a : m.axes()) {
    c.index[a.index()] = rank % m.size(a);
    rank /= m.size(a);
  }
  return c;
}

std::string to_string(const Placement& p) {
  if (p.is_replicated()) return "R";
  if (p.is_partial()) return "P";
  return p.unit == 1 ? fmt::format("S({})", p.dim) : fmt::format("S({}, unit {})", p.dim, p.unit);
}

std::string to_string(const Layout& l, const Mesh& m) {
  std::string out;
  for (Axis a : m.axes()) out += fmt::format("{}{} {}", out.empty() ? "[" : ", ", m.name(a), to_string(l[a]));
  return out + "]";
}

Range shard_range(i64 size, i64 unit, int shards, int index) {
  REDCO_CHECK(unit > 0 && shards > 0 && index >= 0 && index < shards, "unit {} shards {} index {}", unit,
              shards, index);
  const i64 units = ceil_div(size, unit);
  const i64 each = units / shards, more = units % shards;
  const i64 first = index * each + std::min<i64>(index, more);
  const i64 last = first + each + (index < more ? 1 : 0);
  return {std::min(first * unit, size), std::min(last * unit, size)};
}

Range local_range(const Shape& shape, const Layout& l, const Mesh& m, const Coord& c, int dim) {
  Range r{0, shape[dim]};
  for (Axis a : m.axes())
    if (l[a].is_sharded(dim) && m.size(a) > 1) {
      const Range s = shard_range(r.size(), l[a].unit, m.size(a), c.at(a));
      r = {r.begin + s.begin, r.begin + s.end};
    }
  return r;
}

Shape local_shape(const Shape& shape, const Layout& l, const Mesh& m, const Coord& c) {
  Shape out = shape;
  for (Axis a : m.axes())
    if (l[a].is_sharded()) {
      REDCO_CHECK(l[a].dim >= 0 && l[a].dim < static_cast<int>(shape.size()), "{} of {}", to_string(l, m),
                  to_string(shape));
      if (m.size(a) > 1) out[l[a].dim] = local_range(shape, l, m, c, l[a].dim).size();
    }
  return out;
}

int state_dim(const Layout& l, const Shape& shape, const Mesh& m) {
  const int last = static_cast<int>(shape.size()) - 1;
  for (int d = 0; d < last; ++d) {
    i64 most = shape[d];  // indices of the first rank, which has the most
    for (Axis a : m.axes())
      if (m.role(a) == AxisRole::model && l[a].is_sharded(d) && m.size(a) > 1)
        most = shard_range(most, l[a].unit, m.size(a), 0).size();
    if (most > 1) return d;
  }
  return last;
}

i64 elements_before(const Shape& local, int dim, i64 at) {
  i64 n = at;
  for (int d = 0; d < static_cast<int>(local.size()); ++d)
    if (d != dim) n *= local[d];
  return n;
}

Layout sharded_over_replicas(Layout l, const Shape& shape, const Mesh& m) {
  if (shape.empty()) return l;
  const int dim = state_dim(l, shape, m);
  for (Axis a : m.axes())
    if (m.role(a) == AxisRole::data) l[a] = Placement::sharded(dim);
  return l;
}

bool same_cut(const Shape& shape, const Placement& a, const Placement& b, int shards) {
  if (shards == 1 && !a.is_partial() && !b.is_partial()) return true;
  if (a == b) return true;
  if (!a.is_sharded() || !b.is_sharded() || a.dim != b.dim) return false;
  for (int i = 0; i < shards; ++i)
    if (shard_range(shape[a.dim], a.unit, shards, i) != shard_range(shape[b.dim], b.unit, shards, i))
      return false;
  return true;
}

i64 kv_repeat(i64 n_head, i64 n_kv, int shards) {
  REDCO_CHECK(n_kv > 0 && n_head % n_kv == 0, "n_head {} n_kv {}", n_head, n_kv);
  const i64 groups = n_head / n_kv;
  for (i64 f = 1; f < groups; ++f)
    if (groups % f == 0 && n_kv * f >= shards) return f;
  return groups;
}

}  // namespace redco
