// Mesh, placements and layouts: how one global tensor is stored on the ranks. Needs names and shapes only.
//
// A tensor denotes one global value. Its Layout has one Placement per mesh axis:
//   replicated   every rank of the axis holds all of it
//   sharded      one dim is cut into units; each rank gets whole units, the first ranks at most one more
//   partial      the value is the sum of what the ranks of the axis hold
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
  int dim = 0;   // sharded: the dim that is cut, counted from the left
  i64 unit = 1;  // sharded: number of consecutive elements that are never separated

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

// The half-open interval [begin, end).
struct Range {
  i64 begin = 0, end = 0;
  i64 size() const { return end - begin; }
  bool operator==(const Range&) const = default;
};

// The only function that computes borders: cuts `size` elements into `shards` ranges of whole units of `unit`
// elements (the last unit may be shorter). Sizes differ by at most one unit, larger ones first.
Range shard_range(i64 size, i64 unit, int shards, int index);

// The part of dim `dim` that the rank at `c` stores.
Range local_range(const Shape& shape, const Layout& l, const Mesh& m, const Coord& c, int dim);
Shape local_shape(const Shape& shape, const Layout& l, const Mesh& m, const Coord& c);

// Whether the two placements cut a tensor at the same borders, even if their units differ.
bool same_cut(const Shape& shape, const Placement& a, const Placement& b, int shards);

// Grouped key/value heads on `shards` ranks: returns f, the number of times that K and V weights are
// repeated. f is the smallest divisor of n_head / n_kv with n_kv * f >= shards, or n_head / n_kv if there is
// none. q and o are then cut in units of n_head / (n_kv * f) heads.
i64 kv_repeat(i64 n_head, i64 n_kv, int shards);

}  // namespace redco
