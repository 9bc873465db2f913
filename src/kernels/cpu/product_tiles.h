// A product of many rows, tile by tile.
#pragma once

#include <cstdint>

#include "kernels/cpu/products.h"
#include "kernels/cpu/tiles.h"

namespace redco::kernels {

// The rows and columns of y that one piece of work computes.
struct Tile {
  i64 row, rows, column, columns;
};

// How a product is cut into tiles, and what a tile needs of the workspace, in floats: packed operands, parts
// of them in fp32, sums that do not lie in y.
struct Tiles {
  i64 rows = 0, columns = 0;  // of a tile
  // The tile of y^T = b^T a^T is computed and then transposed, because y has few rows or few columns.
  bool transposed = false;
  bool packs_left = false;  // in fp32, also of a left operand whose rows lie as the tile reads them
  i64 left = 0, right = 0, wide = 0, sums = 0;
  i64 room() const { return left + right + wide + sums; }
};

// Products x w^T with at most this many rows are computed as their transpose.
constexpr i64 kTransposedRows = kTileUnit;

// What multiplies: fp32, or pairs of bf16 by AVX512-BF16 or by AMX (bf16_tiles.h).
enum class Unit : std::uint8_t { f32, dot, amx };

// Tiles are small enough for `threads` threads. Each element of y is summed in the same order for any tiles:
// over blocks of k that depend on k and the unit.
Tiles tiles_of(const Product& p, Unit unit, i64 threads);
void multiply_tile(const Product& p, Unit unit, const Tile& t, const Tiles& tiles, float* room);

}  // namespace redco::kernels
