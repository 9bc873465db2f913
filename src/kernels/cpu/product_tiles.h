// A product of many rows, tile by tile.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/cpu/products.h"
#include "kernels/cpu/tiles.h"

namespace redco::kernels {

// The rows and columns of y that one piece of work computes.
struct Tile {
  i64 row, rows, column, columns;
};

// One side of a matrix in `parts` pieces of about equal size, all but the last one multiples of `unit`.
struct Cut {
  i64 size = 0, unit = 1, parts = 1;
  // Where a piece begins.
  i64 at(i64 part) const { return std::min(size, part * ceil_div(size, unit) / parts * unit); }
  i64 largest() const { return std::min(size, ceil_div(ceil_div(size, unit), parts) * unit); }
  double mean() const { return static_cast<double>(size) / static_cast<double>(parts); }
};

// How a product is cut into tiles, and what a tile needs of the workspace, in floats: packed operands, parts
// of them in fp32, sums that do not lie in y.
struct Tiles {
  Cut rows, columns;
  i64 strip = 0;  // columns of the right operand that are packed at a time
  // The tile of y^T = b^T a^T is computed and then transposed, because y has few rows or few columns.
  bool transposed = false;
  bool packs_left = false;  // in fp32, also of a left operand whose rows lie as the tile reads them
  i64 left = 0, right = 0, wide = 0, sums = 0;
  i64 room() const { return left + right + wide + sums; }
  i64 count() const { return rows.parts * columns.parts; }
  // They are numbered along the rows: a thread's share (pool.h) is rows of y, and threads that take their
  // shares at the same speed read the same columns of b.
  Tile tile(i64 i) const {
    const i64 down = i / columns.parts, across = i % columns.parts;
    const i64 r = rows.at(down), c = columns.at(across);
    return {r, rows.at(down + 1) - r, c, columns.at(across + 1) - c};
  }
};

// Products x w^T with at most so many rows are computed as their transpose: any, and those that nearly fill
// the lanes of vectors and read w in its own type.
constexpr i64 kTransposedRows = kTileUnit, kTransposedFullRows = 2 * kTileUnit;

// What multiplies: fp32, or pairs of bf16 by AVX512-BF16 or by AMX (bf16_tiles.h).
enum class Unit : std::uint8_t { f32, dot, amx };
Unit unit_of(bool bf16);

// Tiles that keep `threads` threads busy for about the same time. Each element of y is summed in the same
// order for any tiles: over blocks of k that depend on k and the unit.
Tiles tiles_of(const Product& p, Unit unit, i64 threads);
void multiply_tile(const Product& p, Unit unit, const Tile& t, const Tiles& tiles, float* room);

// A matrix whose rows are `ld` elements apart, or its transpose.
template <class T>
struct Operand {
  const T* data;
  i64 ld;
  bool trans = false;
};

// y[m, n] = a[m, k] b[k, n] of bf16 with sums in fp32, on the calling thread: for blocks of attention. An a
// of fp32 is rounded to bf16. b is packed before, into size_of_b() floats; room: size_of_a() floats. add: the
// product is added to y. REQUIRES: Unit::dot, k <= kDeepest.
struct DotProduct {
  static constexpr i64 kDeepest = 1024;
  i64 n, k;
  i64 size_of_b() const;
  i64 size_of_a(i64 m) const;
  void pack(const Operand<bf16>& b, float* to) const;
  template <class T>
  void multiply(i64 m, const Operand<T>& a, const float* b, bool add, float* y, i64 ldy, float* room) const;
};

}  // namespace redco::kernels
