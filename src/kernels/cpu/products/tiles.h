// A product of many rows, tile by tile.
#pragma once

#include <algorithm>

#include "kernels/cpu/products/micro_tiles.h"
#include "kernels/cpu/products/path.h"

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

// Tiles that keep `threads` threads busy for about the same time. Each element of y is summed in the same
// order for any tiles: over blocks of k that depend on k and the unit. REQUIRES: has_tiles(path).
Tiles tiles_of(const Product& p, Unit unit, Path path, i64 threads);
void multiply_tile(const Product& p, Unit unit, const Tile& t, const Tiles& tiles, float* room);

}  // namespace redco::kernels
