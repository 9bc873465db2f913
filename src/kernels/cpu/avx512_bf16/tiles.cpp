// Products of pairs by VDPBF16PS. A packed left operand has panels of 8 rows. Sums of a micro-tile of 8 x 48
// stay in 24 registers.
#include "kernels/cpu/avx512_bf16/pairs.h"

namespace redco::kernels {
namespace {

constexpr i64 kRows = DotTiles::kRows, kColumns = DotTiles::kColumns;
constexpr int kVectors = kColumns / kLanes;

// Sums of M rows, and of the columns that the masks select. Packed rows are kRows apart.
template <int M, int V, bool packed>
void micro_tile(i64 pairs, const LeftPairs& a, const u32* b, i64 columns, const TileOutput& out, i64 at_row,
                i64 at_column) {
  // Unrolled, or the compiler keeps the sums in memory.
  __m512 sums[M][V];
#pragma GCC unroll 8
  for (auto& row : sums)
#pragma GCC unroll 3
    for (__m512& s : row) s = _mm512_setzero_ps();
  const u32* const left = a.data;
  for (i64 p = 0; p < pairs; ++p) {
    __m512bh right[V];
#pragma GCC unroll 3
    for (int j = 0; j < V; ++j)
      right[j] = reinterpret_cast<__m512bh>(_mm512_loadu_si512(b + p * kColumns + kLanes * j));
#pragma GCC unroll 8
    for (int i = 0; i < M; ++i) {
      const u32 pair = packed ? left[p * kRows + i] : left[i * a.row + p];
      const auto both = reinterpret_cast<__m512bh>(_mm512_set1_epi32(static_cast<int>(pair)));
#pragma GCC unroll 3
      for (int j = 0; j < V; ++j) sums[i][j] = _mm512_dpbf16_ps(sums[i][j], both, right[j]);
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < M; ++i) {
    const i64 row = at_row + i;
#pragma GCC unroll 3
    for (int j = 0; j < V; ++j) {
      const __mmask16 m = mask16(columns - kLanes * j);
      const i64 c = at_column + kLanes * j;
      __m512 s = sums[i][j];
      if (out.before) s = _mm512_add_ps(_mm512_maskz_loadu_ps(m, out.before + row * out.ld_before + c), s);
      write(s, load_bias(out, c, m), m, out, row * out.ld + c);
    }
  }
}

template <int V, bool packed>
void micro_tile(i64 rows, i64 pairs, const LeftPairs& a, const u32* b, i64 columns, const TileOutput& out,
                i64 at_row, i64 at_column) {
  switch (rows) {
    case 1:
      return micro_tile<1, V, packed>(pairs, a, b, columns, out, at_row, at_column);
    case 2:
      return micro_tile<2, V, packed>(pairs, a, b, columns, out, at_row, at_column);
    case 3:
      return micro_tile<3, V, packed>(pairs, a, b, columns, out, at_row, at_column);
    case 4:
      return micro_tile<4, V, packed>(pairs, a, b, columns, out, at_row, at_column);
    case 5:
      return micro_tile<5, V, packed>(pairs, a, b, columns, out, at_row, at_column);
    case 6:
      return micro_tile<6, V, packed>(pairs, a, b, columns, out, at_row, at_column);
    case 7:
      return micro_tile<7, V, packed>(pairs, a, b, columns, out, at_row, at_column);
    default:
      return micro_tile<8, V, packed>(pairs, a, b, columns, out, at_row, at_column);
  }
}

// Rows [row, row + rows) and V vectors of columns, of which the last may be cut.
template <int V>
void micro_tile(i64 row, i64 rows, i64 pairs, const LeftPairs& a, const u32* b, i64 columns,
                const TileOutput& out, i64 at_column) {
  if (a.step == 1) {
    micro_tile<V, false>(rows, pairs, {a.data + row * a.row, a.row, 1}, b, columns, out, row, at_column);
  } else {
    micro_tile<V, true>(rows, pairs, {a.data + row * pairs, a.row, a.step}, b, columns, out, row, at_column);
  }
}

}  // namespace

template <class T>
LeftPairs DotTiles::pack_left(const T* a, i64 ld, bool trans, i64 m, i64 k, u32* to) {
  const i64 pairs = pairs_in(k);
  if (!trans) {
    for (i64 r = 0; r < m; ++r)
      for (i64 p = 0; p < pairs; p += kLanes)
        _mm512_mask_storeu_epi32(to + r * pairs + p, mask16(pairs - p),
                                 load32(a + r * ld + 2 * p, k - 2 * p));
    return {to, pairs, 1};
  }
  static_assert(kLanes == 2 * kRows);
  for (i64 p = 0; p < pairs; ++p) {
    const T* const x = a + 2 * p * ld;
    const T* const next = 2 * p + 1 < k ? x + ld : nullptr;
    for (i64 r = 0; r < m; r += kLanes) {
      const __m512i v = load_pairs(x + r, next ? next + r : nullptr, mask16(m - r));
      u32* const panel = to + (r * pairs) + p * kRows;
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(panel), _mm512_castsi512_si256(v));
      if (r + kRows < m)
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(panel + kRows * pairs),
                            _mm512_extracti64x4_epi64(v, 1));
    }
  }
  return {to, 1, kRows};
}

template <class T>
void DotTiles::pack_right(const T* b, i64 ld, bool trans, i64 n, i64 k, u32* to) {
  pack_panels<DotTiles>(b, ld, trans, n, k, to);
}

void DotTiles::multiply(i64 m, i64 n, i64 k, const LeftPairs& a, const u32* b, const TileOutput& out) {
  const i64 pairs = pairs_in(k);
  // Row by row, so that few pages of y are written at a time.
  for (i64 r = 0; r < m; r += kRows)
    for (i64 c = 0; c < n; c += kColumns) {
      const i64 rows = std::min(kRows, m - r), columns = std::min(kColumns, n - c);
      const u32* const panel = b + c * pairs;
      if (columns <= kLanes) {
        micro_tile<1>(r, rows, pairs, a, panel, columns, out, c);
      } else if (columns <= 2 * kLanes) {
        micro_tile<2>(r, rows, pairs, a, panel, columns, out, c);
      } else {
        micro_tile<kVectors>(r, rows, pairs, a, panel, columns, out, c);
      }
    }
}

template LeftPairs DotTiles::pack_left(const float*, i64, bool, i64, i64, u32*);
template LeftPairs DotTiles::pack_left(const bf16*, i64, bool, i64, i64, u32*);
template void DotTiles::pack_right(const float*, i64, bool, i64, i64, u32*);
template void DotTiles::pack_right(const bf16*, i64, bool, i64, i64, u32*);

}  // namespace redco::kernels
