#include "kernels/cpu/product_tiles.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "base/background.h"
#include "base/error.h"
#include "kernels/cpu/bf16_tiles.h"
#include "kernels/cpu/matrix.h"

namespace redco::kernels {
namespace {

// A block [p, p + deep) of k, whose operands are packed together. Blocks of a k have about equal sizes, and
// cut no groups.
struct Block {
  i64 p, deep;
};
template <class Way>
i64 depth_of(i64 k) {
  static_assert(Way::kDeepest % kGroup == 0);
  const i64 blocks = ceil_div(std::max<i64>(k, 1), Way::kDeepest);
  return ceil_div(ceil_div(k, blocks), kGroup) * kGroup;
}
template <class Way>
i64 blocks_in(const Product& p) {
  i64 n = 0;
  for (const Term& t : p.terms)
    if (t.k > 0) n += ceil_div(t.k, depth_of<Way>(t.k));
  return n;
}

// The part of a stored operand that a tile reads: `lines` stored rows of `length` elements.
struct Part {
  i64 row, column, lines, length;
};
Part left_part(const Matrix& a, const Tile& t, const Block& b) {
  return a.trans ? Part{b.p, t.row, b.deep, t.rows} : Part{t.row, b.p, t.rows, b.deep};
}
Part right_part(const Matrix& b, const Tile& t, const Block& k) {
  return b.trans ? Part{t.column, k.p, t.columns, k.deep} : Part{k.p, t.column, k.deep, t.columns};
}

struct Lines {
  const float* data;
  i64 ld;
};
// Operands are packed in strips, so that what is packed, and before that widened, is read from the cache: the
// right one by the columns that are multiplied next, a multiple of kStrip, the left one by kStrip rows.
static_assert(kStrip % kGroup == 0);
// A part in fp32, which is widened into `room` if it is stored otherwise.
Lines in_f32(const Matrix& x, const Part& part, float* room) {
  if (x.type == DType::f32)
    return {elements<float>(x, part.row, part.column), x.row / static_cast<i64>(sizeof(float))};
  for (i64 i = 0; i < part.lines; ++i)
    widen(at(x, part.row + i, part.column), x.type, part.length, room + i * part.length);
  return {room, part.length};
}

// The ways to multiply tiles: packed operands of E, and the products of tiles of them. Tiles have at most
// kMostColumns columns and are cut at multiples of kUnit, blocks of k have at most kDeepest elements.
struct InF32 {
  using E = float;
  static constexpr i64 kUnit = kTileUnit;
  static constexpr i64 kMostColumns = 16 * kTileUnit;
  static constexpr i64 kDeepest = 1024;  // the panel of the right operand (196 KB) stays in the L2 cache
  static void add_rooms(Tiles& r, const Term& t, i64 deep) {
    const bool widened = t.a.type != DType::f32;
    const i64 rows = r.rows.largest();
    if (t.a.trans || r.packs_left || widened) r.left = std::max(r.left, (rows + kTileUnit) * deep);
    r.right = std::max(r.right, (r.strip + kTileUnit) * deep);
    if (widened) r.wide = std::max(r.wide, std::min(kStrip, rows) * deep);
    if (t.b.type != DType::f32) r.wide = std::max(r.wide, r.strip * deep);
  }
  static Left<E> left(const Matrix& a, const Tile& t, const Block& b, const Tiles& tiles, float* wide,
                      E* to) {
    if (a.type == DType::f32 && !a.trans && !tiles.packs_left) {
      const Lines x = in_f32(a, left_part(a, t, b), wide);
      return {x.data, x.ld, 1};
    }
    Left<E> packed{};
    for (i64 r = 0; r < t.rows; r += kStrip) {
      const Tile strip{t.row + r, std::min(kStrip, t.rows - r), t.column, t.columns};
      const Lines x = in_f32(a, left_part(a, strip, b), wide);
      packed = REDCO_ISA_CALL(pack_left(x.data, x.ld, a.trans, strip.rows, b.deep, to + r * b.deep));
    }
    packed.data = to;
    return packed;
  }
  static void right(const Matrix& b, const Tile& strip, const Block& k, float* wide, E* to) {
    const Lines x = in_f32(b, right_part(b, strip, k), wide);
    REDCO_ISA_CALL(pack_right(x.data, x.ld, b.trans, strip.columns, k.deep, to));
  }
  static void multiply(i64 m, i64 n, i64 k, const Left<E>& a, const E* b, const TileOutput& out) {
    REDCO_ISA_CALL(multiply_tile(m, n, k, a, b, out));
  }
};

template <class Pairs>
struct InPairs {
  using E = u32;
  static constexpr i64 kUnit = std::lcm(kTileUnit, Pairs::kColumns);
  static constexpr i64 kMostColumns = 8 * kTileUnit;
  static constexpr i64 kDeepest = Pairs::kDeepest;
  static void add_rooms(Tiles& r, const Term& t, i64 deep) {
    r.left = std::max(r.left, Pairs::left_size(r.rows.largest(), deep));
    r.right = std::max(r.right, Pairs::right_size(r.strip, deep));
    if (is_grouped(t.b.type)) r.wide = std::max(r.wide, r.strip * deep);
  }
  static Left<E> left(const Matrix& a, const Tile& t, const Block& b, const Tiles&, float*, E* to) {
    const Part part = left_part(a, t, b);
    if (a.type == DType::bf16)
      return left_of(elements<bf16>(a, part.row, part.column), a.row / 2, a.trans, t.rows, b.deep, to);
    REDCO_CHECK(a.type == DType::f32, "a left operand of type {}", name_of(a.type));
    const float* const x = elements<float>(a, part.row, part.column);
    return Pairs::pack_left(x, a.row / 4, a.trans, t.rows, b.deep, to);
  }
  static void right(const Matrix& b, const Tile& strip, const Block& k, float* wide, E* to) {
    const Part part = right_part(b, strip, k);
    if (b.type == DType::bf16) {
      const bf16* const x = elements<bf16>(b, part.row, part.column);
      return Pairs::pack_right(x, b.row / 2, b.trans, strip.columns, k.deep, to);
    }
    static_assert(kStrip % Pairs::kColumns == 0);
    const Lines x = in_f32(b, part, wide);
    Pairs::pack_right(x.data, x.ld, b.trans, strip.columns, k.deep, to);
  }
  static void multiply(i64 m, i64 n, i64 k, const Left<E>& a, const E* b, const TileOutput& out) {
    Pairs::multiply(m, n, k, a, b, out);
  }
  // As it is stored, if possible.
  static Left<E> left_of(const bf16* x, i64 ld, bool trans, i64 rows, i64 k, E* to) {
    const bool whole = ld % 2 == 0 && reinterpret_cast<std::uintptr_t>(x) % 4 == 0;
    if (!trans && whole && Pairs::reads_stored(rows, k)) return {reinterpret_cast<const u32*>(x), ld / 2, 1};
    return Pairs::pack_left(x, ld, trans, rows, k, to);
  }
};

// f(way), of the unit's way.
template <class F>
decltype(auto) in_way(Unit unit, const F& f) {
  switch (unit) {
    case Unit::amx:
      return f(InPairs<AmxTiles>{});
    case Unit::dot:
      return f(InPairs<DotTiles>{});
    default:
      return f(InF32{});
  }
}

// A sum of nothing, plus the bias.
void write_bias(const Product& p, const Tile& t) {
  for (i64 r = t.row; r < t.row + t.rows; ++r)
    for (i64 c = t.column; c < t.column + t.columns; ++c) {
      const float y = p.bias ? p.bias[c] : 0.0f;
      if (p.type == DType::f32) {
        *y_at<float>(p, r, c) = y;
      } else {
        REDCO_ISA_CALL(to_bf16(&y, reinterpret_cast<u16*>(y_at<bf16>(p, r, c)), 1));
      }
    }
}

template <class Way>
void multiply_in(const Product& p, const Tile& t, const Tiles& tiles, float* room) {
  using E = typename Way::E;
  static_assert(sizeof(E) == sizeof(float));
  E *const left = reinterpret_cast<E*>(room), *const right = left + tiles.left;
  float* const wide = room + tiles.left + tiles.right;
  const bool direct = p.type == DType::f32;
  float* const sums = direct ? y_at<float>(p, t.row, t.column) : wide + tiles.wide;
  const i64 ld = direct ? p.n : t.columns, blocks = blocks_in<Way>(p);
  if (blocks == 0) return write_bias(p, t);
  i64 done = 0;
  for (const Term& term : p.terms) {
    const i64 depth = depth_of<Way>(term.k);
    for (Block b{0, 0}; b.p < term.k; b.p += b.deep) {
      b.deep = std::min(depth, term.k - b.p);
      const Left<E> a = Way::left(term.a, t, b, tiles, wide, left);
      const bool first = done == 0, last = ++done == blocks;
      for (i64 c = 0; c < t.columns; c += tiles.strip) {
        const Tile strip{t.row, t.rows, t.column + c, std::min(tiles.strip, t.columns - c)};
        Way::right(term.b, strip, b, wide, right);
        TileOutput out{.y = sums + c, .ld = ld};
        if (!first) {
          out.before = sums + c;
          out.ld_before = ld;
        }
        if (last) {
          out.bias = p.bias ? p.bias + strip.column : nullptr;
          out.bf16 = !direct;
          if (!direct) out.y = y_at<bf16>(p, strip.row, strip.column);
          out.ld = p.n;
        }
        Way::multiply(t.rows, strip.columns, b.deep, a, right, out);
        background::poll();  // a tile takes some ms
      }
    }
  }
}

// Whether y^T = b^T a^T is less work: with few rows in y if it can read b, which is large, as it lies, and
// with so few columns that most lanes of a vector along them would be empty.
bool transposes(const Product& p, Unit unit) {
  constexpr i64 kLanes = 16;
  if (std::ranges::all_of(p.terms, [](const Term& t) { return t.k <= 0; })) return false;
  // Full rows were not measured with AMX.
  const i64 lanes = ceil_div(p.m, kLanes) * kLanes;
  const bool full = unit != Unit::amx && p.m <= kTransposedFullRows && 9 * p.m >= 8 * lanes;
  const DType own = unit == Unit::f32 ? DType::f32 : DType::bf16;
  bool as_it_lies = true;
  for (const Term& t : p.terms) {
    if (is_grouped(t.b.type) && (unit != Unit::f32 || !t.b.trans)) return false;
    as_it_lies =
        as_it_lies && !t.a.trans && t.b.trans && (p.m <= kTransposedRows || (full && t.b.type == own));
  }
  return as_it_lies || 2 * p.n * ceil_div(p.m, kLanes) <= p.m * ceil_div(p.n, kLanes);
}

// The same matrix from row or column `first` on: a row of the operand on the left, a column of that on the
// right.
Matrix from_row(Matrix x, i64 first) {
  x.data = x.trans ? at(x, 0, first) : at(x, first, 0);
  return x;
}
Matrix from_column(Matrix x, i64 first) {
  x.data = x.trans ? at(x, first, 0) : at(x, 0, first);
  return x;
}
// Of a tile of y^T.
Product transpose_of(const Product& p, const Tile& t) {
  Product out = transpose_of(p);
  out.m = t.columns;
  out.n = t.rows;
  for (Term& x : out.terms) {
    x.a = from_row(x.a, t.column);
    x.b = from_column(x.b, t.row);
  }
  return out;
}

// A tile of y from one of y^T.
template <class Way>
void multiply_transposed(const Product& p, const Tile& t, const Tiles& tiles, float* room) {
  Product of_tile = transpose_of(p, t);
  float* const sums = room + tiles.room() - tiles.sums;
  of_tile.y = sums;
  multiply_in<Way>(of_tile, {0, t.columns, 0, t.rows}, tiles, room);
  const float* const bias = p.bias ? p.bias + t.column : nullptr;
  if (p.type == DType::f32)
    return REDCO_ISA_CALL(
        transpose_sums(sums, t.columns, t.rows, bias, y_at<float>(p, t.row, t.column), p.n));
  float* const rows = sums + t.columns * t.rows;
  REDCO_ISA_CALL(transpose_sums(sums, t.columns, t.rows, bias, rows, t.columns));
  for (i64 r = 0; r < t.rows; ++r)
    REDCO_ISA_CALL(
        to_bf16(rows + r * t.columns, reinterpret_cast<u16*>(y_at<bf16>(p, t.row + r, t.column)), t.columns));
}

template <class Way>
void add_rooms(Tiles& t, const Product& p) {
  // A tile reads its left operand for each panel of columns. Rows that are some KB apart share few sets of
  // the L1 cache: with 3072 columns in a row that halves the speed of fp32, and to pack it costs 5 %.
  const i64 columns = t.columns.largest();
  t.packs_left = columns > kStrip;
  const auto deep = [](const Term& x) { return std::min(x.k, depth_of<Way>(x.k)); };
  i64 deepest = 1;
  for (const Term& x : p.terms) deepest = std::max(deepest, deep(x));
  t.strip = std::min(columns, std::max<i64>(1, kNear / (deepest * kStrip)) * kStrip);
  for (const Term& x : p.terms) Way::add_rooms(t, x, deep(x));
}

// The cut that takes the least time: that of the rounds in which `threads` threads compute all tiles, of
// which each packs its operands. At least two tiles for each of several threads, since one may be
// interrupted.
template <class Way>
void cut(Tiles& t, i64 threads) {
  constexpr i64 kMostRows = 512, kSmallest = 2 * kTileUnit;
  constexpr double kPacking = 24;  // to pack an element takes as long as this many multiply-adds
  struct Range {
    i64 fewest, most;
  };
  const auto parts = [](const Cut& side, i64 longest) {
    const i64 fewest = ceil_div(side.size, longest);
    return Range{fewest, std::max(fewest, side.size / kSmallest)};
  };
  const Range down = parts(t.rows, kMostRows), across = parts(t.columns, Way::kMostColumns);
  double shortest = std::numeric_limits<double>::infinity();
  Cut rows = t.rows, columns = t.columns;
  const auto attempt = [&] {
    const i64 tiles = rows.parts * columns.parts, least = threads > 1 ? 2 : 1;
    const double rounds = static_cast<double>(std::max(least, ceil_div(tiles, threads)));
    const auto time_of = [](double m, double n) { return m * n + kPacking * (m + n); };
    const double mean = time_of(rows.mean(), columns.mean());
    // The last round takes as long as its largest tile.
    const double time = (rounds - 1) * mean +
                        time_of(static_cast<double>(rows.largest()), static_cast<double>(columns.largest()));
    if (time >= shortest) return;
    shortest = time;
    t.rows.parts = rows.parts;
    t.columns.parts = columns.parts;
  };
  for (rows.parts = down.fewest; rows.parts <= std::min(down.most, down.fewest + 2 * threads); ++rows.parts) {
    const i64 even = threads / std::gcd(threads, rows.parts);  // of so many, all threads get as many tiles
    const i64 wanted = std::max(across.fewest, ceil_div(2 * threads, rows.parts));
    for (const i64 n : {across.fewest, ceil_div(wanted, even) * even, across.most}) {
      columns.parts = std::min(n, across.most);
      attempt();
    }
  }
}

template <class Way>
Tiles tiles_in(const Product& p, Unit unit, i64 threads) {
  // A multiple of the rows of most micro-tiles. Rows of a transposed tile are its columns.
  constexpr i64 kRowUnit = 16;
  const bool transposed = transposes(p, unit);
  Tiles t{.rows = {.size = p.m, .unit = transposed ? Way::kUnit : kRowUnit},
          .columns = {.size = p.n, .unit = Way::kUnit},
          .transposed = transposed};
  if (t.transposed) {
    cut<Way>(t, threads);
    Tiles rooms{.rows = t.columns, .columns = t.rows};
    add_rooms<Way>(rooms, transpose_of(p));
    rooms.sums = t.columns.largest() * t.rows.largest() * (p.type == DType::f32 ? 1 : 2);
    std::swap(rooms.rows, rooms.columns);
    rooms.transposed = true;
    return rooms;
  }
  for (const Term& term : p.terms)  // groups along the columns of b are not cut
    if (is_grouped(term.b.type) && !term.b.trans) t.columns.unit = std::lcm(t.columns.unit, kGroup);
  cut<Way>(t, threads);
  add_rooms<Way>(t, p);
  if (p.type != DType::f32 && blocks_in<Way>(p) > 1) t.sums = t.rows.largest() * t.columns.largest();
  return t;
}

}  // namespace

Unit unit_of(bool bf16) {
  return !bf16 || isa() < Isa::avx512_bf16 ? Unit::f32 : isa() == Isa::amx ? Unit::amx : Unit::dot;
}

Tiles tiles_of(const Product& p, Unit unit, i64 threads) {
  return in_way(unit, [&]<class Way>(Way) { return tiles_in<Way>(p, unit, threads); });
}

void multiply_tile(const Product& p, Unit unit, const Tile& t, const Tiles& tiles, float* room) {
  in_way(unit, [&]<class Way>(Way) {
    tiles.transposed ? multiply_transposed<Way>(p, t, tiles, room) : multiply_in<Way>(p, t, tiles, room);
  });
}

static_assert(DotProduct::kDeepest <= DotTiles::kDeepest);
i64 DotProduct::size_of_b() const { return DotTiles::right_size(n, k); }
i64 DotProduct::size_of_a(i64 m) const { return DotTiles::left_size(m, k); }
void DotProduct::pack(const Operand<bf16>& b, float* to) const {
  DotTiles::pack_right(b.data, b.ld, b.trans, n, k, reinterpret_cast<u32*>(to));
}
template <class T>
void DotProduct::multiply(i64 m, const Operand<T>& a, const float* b, bool add, float* y, i64 ldy,
                          float* room) const {
  auto* const to = reinterpret_cast<u32*>(room);
  const auto left = [&] {
    if constexpr (std::is_same_v<T, bf16>) {
      return InPairs<DotTiles>::left_of(a.data, a.ld, a.trans, m, k, to);
    } else {
      return DotTiles::pack_left(a.data, a.ld, a.trans, m, k, to);
    }
  }();
  TileOutput out{.y = y, .ld = ldy};
  if (add) {
    out.before = y;
    out.ld_before = ldy;
  }
  DotTiles::multiply(m, n, k, left, reinterpret_cast<const u32*>(b), out);
}
template void DotProduct::multiply(i64, const Operand<float>&, const float*, bool, float*, i64, float*) const;
template void DotProduct::multiply(i64, const Operand<bf16>&, const float*, bool, float*, i64, float*) const;

}  // namespace redco::kernels
