// How tiles pack their operands, in each unit that multiplies them. Included by tiles.cpp and
// dot_product.cpp.
#pragma once

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "kernels/cpu/isa/ranges.h"
#include "kernels/cpu/products/bf16_tiles.h"
#include "kernels/cpu/products/matrix.h"
#include "kernels/cpu/products/tiles.h"
#include "kernels/isa.h"

namespace redco::kernels {

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
inline Part left_part(const Matrix& a, const Tile& t, const Block& b) {
  return a.trans ? Part{b.p, t.row, b.deep, t.rows} : Part{t.row, b.p, t.rows, b.deep};
}
inline Part right_part(const Matrix& b, const Tile& t, const Block& k) {
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
inline Lines in_f32(const Matrix& x, const Part& part, float* room) {
  if (x.type == DType::f32)
    return {elements<float>(x, part.row, part.column), x.row / static_cast<i64>(sizeof(float))};
  for (i64 i = 0; i < part.lines; ++i)
    widen(x, part.row + i, part.column, part.length, room + i * part.length);
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

}  // namespace redco::kernels
