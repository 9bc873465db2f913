// Mesh, placements and layouts: how one global tensor is stored on the ranks. Needs names and shapes only.
//
// A tensor denotes one global value. Its Layout has one Placement per mesh axis:
//   replicated   every rank of the axis holds all of it
//   sharded      one dim is cut into units; each rank gets whole units, the first ranks at most one more
//   partial      the value is the sum of what the ranks of the axis hold
// If several axes cut the same dim, they cut in the order of the mesh: the first cuts the dim, the next one
// each of its shards.
#pragma once

#include <array>
#include <initializer_list>
#include <string>

#include "base/small_vector.h"
#include "base/types.h"

namespace redco {

// The most axes that a mesh has.
inline constexpr int kMaxAxes = 6;

// One axis of a mesh: its place in the order of cutting. Every mesh begins with mp and dp; further axes have
// only the name and the role that the mesh gives them.
class Axis {
 public:
  static const Axis mp, dp;
  constexpr explicit Axis(int index) : index_(static_cast<std::uint8_t>(index)) {}
  constexpr int index() const { return index_; }
  constexpr bool operator==(const Axis&) const = default;

 private:
  std::uint8_t index_;
};
inline constexpr Axis Axis::mp{0};  // the shards of the model
inline constexpr Axis Axis::dp{1};  // its replicas

// What an axis is for. Ops ask for the role and never for a name, so a further axis changes no op.
enum class AxisRole : std::uint8_t {
  model,  // cuts the model: a Partial result is reduced where it arises
  data,   // cuts the batch: a Partial result stays Partial up to the reduction of the gradients
};

struct MeshAxis {
  const char* name;  // a literal
  int size;
  AxisRole role;
};

struct Placement {
  enum class Kind : std::uint8_t { replicated, sharded, partial };
  Kind kind = Kind::replicated;
  std::int8_t dim = 0;  // sharded: the dim that is cut, counted from the left
  i32 unit = 1;         // sharded: number of consecutive elements that are never separated

  static Placement replicated() { return {}; }
  static Placement sharded(int dim, i64 unit = 1);
  static Placement partial() { return {Kind::partial, 0, 1}; }
  bool is_replicated() const { return kind == Kind::replicated; }
  bool is_sharded() const { return kind == Kind::sharded; }
  bool is_sharded(int d) const { return kind == Kind::sharded && dim == d; }
  bool is_partial() const { return kind == Kind::partial; }
  bool operator==(const Placement&) const = default;
};
std::string to_string(const Placement& p);  // R, S(0), S(1, unit 8), P

// A placement per axis, inline. Axes that the mesh doesn't have are replicated.
struct Layout {
  std::array<Placement, kMaxAxes> on{};  // by Axis::index()
  Placement& operator[](Axis a) { return on[a.index()]; }
  const Placement& operator[](Axis a) const { return on[a.index()]; }
  bool operator==(const Layout&) const = default;
  // With Replicated in place of each Partial.
  Layout reduced() const {
    Layout l = *this;
    for (Placement& p : l.on)
      if (p.is_partial()) p = Placement::replicated();
    return l;
  }
};

// The mesh of the ranks. The index of the first axis varies fastest: rank = dp_index * mp + mp_index.
class Mesh {
 public:
  Mesh() : Mesh(1, 1) {}
  // `more`: further axes, in their order of cutting.
  Mesh(int dp, int mp, std::initializer_list<MeshAxis> more = {});

  // All axes in the order in which they cut.
  class Axes {
   public:
    class Iterator {
     public:
      explicit Iterator(int i) : i_(i) {}
      Axis operator*() const { return Axis(i_); }
      Iterator& operator++() { return ++i_, *this; }
      bool operator==(const Iterator&) const = default;

     private:
      int i_;
    };
    explicit Axes(int n) : n_(n) {}
    Iterator begin() const { return Iterator(0); }
    Iterator end() const { return Iterator(n_); }
    int size() const { return n_; }

   private:
    int n_;
  };
  Axes axes() const { return Axes(n_axes_); }

  int size(Axis a) const { return axes_[a.index()].size; }
  const char* name(Axis a) const { return axes_[a.index()].name; }
  AxisRole role(Axis a) const { return axes_[a.index()].role; }
  int mp() const { return size(Axis::mp); }
  int dp() const { return size(Axis::dp); }
  int ranks() const;
  int ranks(AxisRole role) const;  // on the axes with this role together
  // Ranks between two neighbours on the axis.
  int stride(Axis a) const;

 private:
  std::array<MeshAxis, kMaxAxes> axes_{};
  int n_axes_;
};
std::string to_string(const Layout& l, const Mesh& m);  // [mp S(0), dp R]

// A rank's index on each axis.
struct Coord {
  std::array<int, kMaxAxes> index{};
  int at(Axis a) const { return index[a.index()]; }
  int mp() const { return at(Axis::mp); }
  int dp() const { return at(Axis::dp); }
};
Coord coord_of(const Mesh& m, int rank);

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
