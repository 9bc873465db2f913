#include "kernels/cpu/products/tiles.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "base/background.h"
#include "kernels/cpu/products/packing.h"
#include "kernels/cpu/room.h"

namespace redco::kernels {
namespace {

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

// The workspace of a tile.
template <class E>
struct TileRoom {
  E *left, *right;     // packed operands
  float *wide, *sums;  // a part of an operand in fp32; sums that do not lie in y
  TileRoom(const Tiles& t, float* memory) {
    static_assert(sizeof(E) == sizeof(float));
    Room<float> room(memory);
    left = room.take<E>(t.left);
    right = room.take<E>(t.right);
    wide = room.take(t.wide);
    sums = room.take(t.sums);
  }
};

template <class Way>
void multiply_in(const Product& p, const Tile& t, const Tiles& tiles, const TileRoom<typename Way::E>& room) {
  using E = typename Way::E;
  const bool direct = p.type == DType::f32;
  float* const sums = direct ? y_at<float>(p, t.row, t.column) : room.sums;
  const i64 ld = direct ? p.n : t.columns, blocks = blocks_in<Way>(p);
  if (blocks == 0) return write_bias(p, t);
  i64 done = 0;
  for (const Term& term : p.terms) {
    const i64 depth = depth_of<Way>(term.k);
    for (Block b{0, 0}; b.p < term.k; b.p += b.deep) {
      b.deep = std::min(depth, term.k - b.p);
      const Left<E> a = Way::left(term.a, t, b, tiles, room.wide, room.left);
      const bool first = done == 0, last = ++done == blocks;
      for (i64 c = 0; c < t.columns; c += tiles.strip) {
        const Tile strip{t.row, t.rows, t.column + c, std::min(tiles.strip, t.columns - c)};
        Way::right(term.b, strip, b, room.wide, room.right);
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
        Way::multiply(t.rows, strip.columns, b.deep, a, room.right, out);
        background::poll();  // a tile takes some ms
      }
    }
  }
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
void multiply_transposed(const Product& p, const Tile& t, const Tiles& tiles,
                         const TileRoom<typename Way::E>& room) {
  Product of_tile = transpose_of(p, t);
  float* const sums = room.sums;
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
Tiles tiles_in(const Product& p, bool transposed, i64 threads) {
  // A multiple of the rows of most micro-tiles. Rows of a transposed tile are its columns.
  constexpr i64 kRowUnit = 16;
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

Tiles tiles_of(const Product& p, Unit unit, Path path, i64 threads) {
  return in_way(unit, [&]<class Way>(Way) { return tiles_in<Way>(p, is_transposed(path), threads); });
}

void multiply_tile(const Product& p, Unit unit, const Tile& t, const Tiles& tiles, float* memory) {
  in_way(unit, [&]<class Way>(Way) {
    const TileRoom<typename Way::E> room(tiles, memory);
    tiles.transposed ? multiply_transposed<Way>(p, t, tiles, room) : multiply_in<Way>(p, t, tiles, room);
  });
}

}  // namespace redco::kernels
