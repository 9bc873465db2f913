// The path of a product: how its elements are computed. docs/kernels.md describes the paths.
#pragma once

#include <cstdint>

#include "kernels/cpu/products/products.h"

namespace redco::kernels {

// What multiplies tiles: fp32, or pairs of bf16 by AVX512-BF16 or by AMX (bf16_tiles.h).
enum class Unit : std::uint8_t { f32, dot, amx };
Unit unit_of(bool bf16);

enum class Path : std::uint8_t {
  // Few rows of y (few_rows.h). b is read once and not packed.
  rows,     // b^T is stored: dot products with its rows
  columns,  // b is stored, in fp32: multiples of its rows are added up
  // The same for y^T = b^T a^T, whose few rows are the columns of y.
  rows_of_transpose,
  columns_of_transpose,
  // Tiles of packed operands (tiles.h).
  tiles,
  tiles_of_transpose,  // of y^T; each tile is transposed when it is done
};
constexpr bool has_tiles(Path p) { return p == Path::tiles || p == Path::tiles_of_transpose; }
constexpr bool is_transposed(Path p) {
  return p == Path::rows_of_transpose || p == Path::columns_of_transpose || p == Path::tiles_of_transpose;
}
constexpr bool reads_rows(Path p) { return p == Path::rows || p == Path::rows_of_transpose; }

// The only place that chooses, by the limits of limits.h. The choice depends on shapes and types alone. So it
// is the same on all ranks and for any number of threads.
Path path_of(const Product& p, Unit unit);
// The choice between tiles of y and of y^T alone.
Path path_of_tiles(const Product& p, Unit unit);

// Whether the left operand of a term is one row that is multiplied with groups as 16-bit integers
// (groups.h).
bool in_words(i64 m, const Term& t);

}  // namespace redco::kernels
