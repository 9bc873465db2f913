// Mesh, placements and layouts: how one global tensor is stored on the ranks. Names and shapes only.
//
// A tensor denotes one global value. Its Layout has one Placement per mesh axis:
//   replicated   every rank of the axis holds all of it
//   sharded      one dim is cut into units, whole units are dealt to the ranks (the first ranks get one more)
//   partial      the value is the sum over the axis' ranks of what they hold
// If both axes cut the same dim, mp cuts first and dp cuts each mp shard.
#pragma once

#include <array>
#include <string>

#include "base/types.h"

namespace redco {

enum class Axis : std::uint8_t { mp = 0, dp = 1 };  // in the order in which they cut
constexpr std::array<Axis, 2> kAxes = {Axis::mp, Axis::dp};
const char* name_of(Axis a);

struct Placement {
  enum class Kind : std::uint8_t { replicated, sharded, partial };
  Kind kind = Kind::replicated;
  int dim = 0;   // sharded: which dim, counted over all dims from the left
  i64 unit = 1;  // sharded: elements that stay together

  static Placement replicated() { return {}; }
  static Placement sharded(int dim, i64 unit = 1) { return {Kind::sharded, dim, unit}; }
  static Placement partial() { return {Kind::partial, 0, 1}; }
  bool is_replicated() const { return kind == Kind::replicated; }
  bool is_sharded() const { return kind == Kind::sharded; }
  bool is_sharded(int d) const { return kind == Kind::sharded && dim == d; }
  bool is_partial() const { return kind == Kind::partial; }
  bool operator==(const Placement&) const = default;
};
std::string to_string(const Placement& p);  // R, S(0), S(1, unit 8), P

struct Layout {
  std::array<Placement, 2> on{};  // indexed by Axis
  Placement& operator[](Axis a) { return on[static_cast<int>(a)]; }
  const Placement& operator[](Axis a) const { return on[static_cast<int>(a)]; }
  bool operator==(const Layout&) const = default;
};
std::string to_string(const Layout& l);  // [mp S(0), dp R]

// rank = dp_index * mp + mp_index
struct Mesh {
  int dp = 1, mp = 1;
  int size(Axis a) const { return a == Axis::mp ? mp : dp; }
  int ranks() const { return dp * mp; }
};
struct Coord {
  int dp = 0, mp = 0;
  int at(Axis a) const { return a == Axis::mp ? mp : dp; }
};
inline Coord coord_of(const Mesh& m, int rank) { return {rank / m.mp, rank % m.mp}; }

// Half-open.
struct Range {
  i64 begin = 0, end = 0;
  i64 size() const { return end - begin; }
  bool operator==(const Range&) const = default;
};

// The one function that gives borders: `size` elements in units of `unit` (the last may be short), cut into
// `shards` of whole units, sizes differing by at most one unit, larger ones first.
Range shard_range(i64 size, i64 unit, int shards, int index);

// The part of dim `dim` that rank `c` stores.
Range local_range(const Shape& shape, const Layout& l, const Mesh& m, const Coord& c, int dim);
Shape local_shape(const Shape& shape, const Layout& l, const Mesh& m, const Coord& c);

// Do the two placements of a tensor cut it at the same borders? (Units may differ in name only.)
bool same_cut(const Shape& shape, const Placement& a, const Placement& b, int shards);

// Grouped key/value heads on `shards` ranks: K and V weights are repeated f times, f the smallest divisor of
// n_head / n_kv with n_kv * f >= shards (else n_head / n_kv). q and o are then cut in units of n_head / (n_kv
// * f) heads.
i64 kv_repeat(i64 n_head, i64 n_kv, int shards);

}  // namespace redco
