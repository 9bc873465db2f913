// Tiles of matrix products that read bf16 and add up in fp32, for CPUs that multiply pairs of bf16. They run
// on the calling thread.
//
// Operands are packed in pairs of neighbours along k; what is missing at the end of k is zero.
#pragma once

#include "kernels/cpu/products/micro_tiles.h"

namespace redco::kernels {

// An element of an operand is a pair.
using LeftPairs = Left<u32>;

// The sizes of one instruction set. Micro-tiles have `rows` rows. k is filled up to a multiple of `pairs`
// pairs. A panel of the right operand holds `columns` columns: for each pair along k, `columns` u32. Blocks
// of k that are packed together have at most `deepest` elements.
template <i64 rows, i64 columns, i64 pairs, i64 deepest>
struct PairSizes {
  static constexpr i64 kRows = rows, kColumns = columns, kPairs = pairs, kDeepest = deepest;
  static_assert(kTileUnit % rows == 0 && deepest % (2 * pairs) == 0);

  static constexpr i64 pairs_in(i64 k) { return ceil_div(k, 2 * kPairs) * kPairs; }
  // Number of u32 of a packed operand.
  static constexpr i64 left_size(i64 m, i64 k) { return ceil_div(m, kRows) * kRows * pairs_in(k); }
  static constexpr i64 right_size(i64 n, i64 k) { return ceil_div(n, kColumns) * kColumns * pairs_in(k); }
};

// What both have. T: float or bf16.
//
// pack_left: packs a[m, k], row stride ld, or a[k, m] if `trans`.
//
// pack_right: packs b[k, n], row stride ld, or b[n, k] if `trans`.
//
// reads_stored: whether multiply() reads a left operand of bf16 in stored form, if its rows are whole pairs.
//
// multiply: one tile of m x n; b is packed.

// AVX512-BF16: instruction VDPBF16PS. REQUIRES: isa() >= avx512_bf16.
struct DotTiles : PairSizes<8, 48, 1, 1024> {
  template <class T>
  static LeftPairs pack_left(const T* a, i64 ld, bool trans, i64 m, i64 k, u32* to);
  template <class T>
  static void pack_right(const T* b, i64 ld, bool trans, i64 n, i64 k, u32* to);
  static constexpr bool reads_stored(i64 /*m*/, i64 k) { return k % 2 == 0; }
  static void multiply(i64 m, i64 n, i64 k, const LeftPairs& a, const u32* b, const TileOutput& out);
};

// AMX: instruction TDPBF16PS. REQUIRES: isa() is amx.
struct AmxTiles : PairSizes<16, 32, 16, 1024> {
  template <class T>
  static LeftPairs pack_left(const T* a, i64 ld, bool trans, i64 m, i64 k, u32* to);
  template <class T>
  static void pack_right(const T* b, i64 ld, bool trans, i64 n, i64 k, u32* to);
  static constexpr bool reads_stored(i64 m, i64 k) { return m % kRows == 0 && k % (2 * kPairs) == 0; }
  static void multiply(i64 m, i64 n, i64 k, const LeftPairs& a, const u32* b, const TileOutput& out);
};

}  // namespace redco::kernels
