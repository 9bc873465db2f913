// Tiles of matrix products that read bf16 and add up in fp32, for CPUs that multiply pairs of bf16
// (AVX512-BF16: instruction VDPBF16PS). They run on the calling thread. REQUIRES: isa() is avx512_bf16.
//
// Operands are packed in pairs of neighbours along k; an odd k ends with a zero.
#pragma once

#include "kernels/cpu/tiles.h"

namespace redco::kernels {

// Rows and columns of one micro-tile.
constexpr i64 kMicroRows = 8, kMicroColumns = 48;
static_assert(kTileUnit % kMicroColumns == 0 && kTileUnit % kMicroRows == 0);

// An element of an operand is a pair.
using LeftPairs = Left<u32>;

namespace avx512_bf16 {

constexpr i64 pairs_in(i64 k) { return (k + 1) / 2; }
// Number of u32 of a packed operand.
constexpr i64 left_size(i64 m, i64 k) { return ceil_div(m, kMicroRows) * kMicroRows * pairs_in(k); }
constexpr i64 right_size(i64 n, i64 k) { return ceil_div(n, kMicroColumns) * kMicroColumns * pairs_in(k); }

// a[m, k], row stride ld, or a[k, m] if `trans`. T: float or bf16.
template <class T>
LeftPairs pack_left(const T* a, i64 ld, bool trans, i64 m, i64 k, u32* to);
// b[k, n], row stride ld, or b[n, k] if `trans`.
template <class T>
void pack_right(const T* b, i64 ld, bool trans, i64 n, i64 k, u32* to);
// One tile of m x n; b is packed.
void multiply(i64 m, i64 n, i64 k, const LeftPairs& a, const u32* b, const TileOutput& out);

}  // namespace avx512_bf16
}  // namespace redco::kernels
