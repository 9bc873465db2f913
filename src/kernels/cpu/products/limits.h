// The limits between the paths of a product (path.h): each with its reason, and with the host that it was
// measured on, as far as that was recorded. Hosts are those of docs/performance.md: Zen 3 (AVX2), Zen 4
// (AVX512-BF16). The plan reads the same limits (plan/call_work.h).
#pragma once

#include "kernels/cpu/products/micro_tiles.h"

namespace redco::kernels {

// --- Rows of y, without packing b ---

// Rows that one read of b computes. Reason: the sums of 8 rows and a vector of b fit in the registers of
// AVX-512. So a pass takes the time of reading b.
constexpr i64 kFewRows = 8;
// Rows if tiles of fp32 would widen b (bf16 or quantized), in passes of kFewRows over a part of b in the L2
// cache. Reason: tiles widen and pack all of b, which takes longer than four passes: 9 rows took 4 times as
// long as 8. Host not recorded.
constexpr i64 kFewWidenedRows = 4 * kFewRows;
// Rows if tiles of bf16 pairs would widen b (quantized). Reason: these tiles are faster. Host not recorded.
constexpr i64 kFewGroupRows = 2 * kFewRows;

// --- Columns of y, as rows of y^T ---

// Columns with sums of any length. Reason: the large operand is read once and not packed. In fp32 1.4 to 3
// times as fast as tiles (256 to 1024 rows). Host not recorded.
constexpr i64 kFewColumns = 2;
// From this length of sums on, kFewRows columns. Reason: the lanes of each dot product are added at its end.
// With short sums that takes longer than packing. Host not recorded.
constexpr i64 kLongSum = 256;

// --- Tiles of y^T instead of tiles of y ---

// Rows up to which tiles of y^T read b without packing it. Reason: tiles of y pack b, and b is the large
// operand. Zen 3: products of 9 to 48 rows.
constexpr i64 kTransposedRows = kTileUnit;
// The same for rows that fill the lanes of vectors, where b has the type that is multiplied. Not measured
// with AMX, so off there. Host not recorded.
constexpr i64 kTransposedFullRows = 2 * kTileUnit;
// fp32 lanes of the widest vectors.
constexpr i64 kWidestLanes = 16;
// Whether at most a ninth of the lanes is empty. Reason: to multiply empty lanes then costs less than to pack
// b.
constexpr bool fills_lanes(i64 rows) { return 9 * rows >= 8 * ceil_div(rows, kWidestLanes) * kWidestLanes; }

}  // namespace redco::kernels
