// What tiles of matrix products have in common, whatever their operands are packed as (isa/tiles.cpp: fp32,
// bf16_tiles.h: pairs of bf16). A tile runs on the calling thread.
#pragma once

#include "base/types.h"

namespace redco::kernels {

// The left operand of a tile: element p of row r is at data[r * row + p * step]. If step > 1 it is packed, in
// panels of `step` rows.
template <class E>
struct Left {
  const E* data;
  i64 row, step;
};

// Where a tile's sums over a block of k go. The last block writes y = bf16 or fp32 of sums + before + bias.
struct TileOutput {
  const float* before = nullptr;  // the sums of earlier blocks, or null
  i64 ld_before = 0;
  const float* bias = nullptr;  // one per column, or null
  void* y = nullptr;
  bool bf16 = false;  // the type of y; else float
  i64 ld = 0;
};

// Sides of tiles are multiples of it, so that no instruction set has micro-tiles that are not full inside.
constexpr i64 kTileUnit = 48;
// So many rows or columns of an operand are packed at a time: whole panels, and whole lines of the cache.
constexpr i64 kStrip = 2 * kTileUnit;
// So many packed elements of 4 bytes stay in the L2 cache together with what streams through it.
constexpr i64 kNear = 48 * 1024;

}  // namespace redco::kernels
