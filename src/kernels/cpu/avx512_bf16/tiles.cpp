// A panel of the right operand holds 48 columns: for each pair along k, 48 u32. A packed left operand has
// panels of 8 rows. Sums of a micro-tile of 8 x 48 stay in 24 registers.
#include <immintrin.h>

#include <algorithm>

#include "kernels/cpu/bf16_tiles.h"

namespace redco::kernels::avx512_bf16 {
namespace {

constexpr int kLanes = 16;
constexpr int kVectors = kMicroColumns / kLanes;

// The first n of `lanes` lanes.
inline __mmask16 mask16(i64 n) {
  return static_cast<__mmask16>(n >= 16 ? 0xffff : n <= 0 ? 0 : (1u << n) - 1);
}
inline __mmask32 mask32(i64 n) {
  return n >= 32 ? ~__mmask32{0} : n <= 0 ? 0 : static_cast<__mmask32>((u64{1} << n) - 1);
}

// 32 elements of a row as bf16: those from `n` on are zero.
inline __m512i load32(const bf16* x, i64 n) { return _mm512_maskz_loadu_epi16(mask32(n), x); }
inline __m512i load32(const float* x, i64 n) {
  const __m512 low = _mm512_maskz_loadu_ps(mask16(n), x),
               high = _mm512_maskz_loadu_ps(mask16(n - 16), x + 16);
  return reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(high, low));
}
// 16 elements of each of two rows, as pairs.
inline __m512i interleaved(__m512i rows) {
  alignas(64) static constexpr std::uint16_t kOrder[32] = {0,  16, 1,  17, 2,  18, 3,  19, 4,  20, 5,
                                                           21, 6,  22, 7,  23, 8,  24, 9,  25, 10, 26,
                                                           11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
  return _mm512_permutexvar_epi16(_mm512_load_si512(kOrder), rows);
}
inline __m512i load_pairs(const bf16* x, const bf16* next, __mmask16 m) {
  const __m256i low = _mm256_maskz_loadu_epi16(m, x);
  const __m256i high = next ? _mm256_maskz_loadu_epi16(m, next) : _mm256_setzero_si256();
  return interleaved(_mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1));
}
inline __m512i load_pairs(const float* x, const float* next, __mmask16 m) {
  const __m512 high = next ? _mm512_maskz_loadu_ps(m, next) : _mm512_setzero_ps();
  return interleaved(reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(high, _mm512_maskz_loadu_ps(m, x))));
}

// 16 x 16 u32.
inline void transpose(__m512i (&r)[16]) {
  __m512i t[16];
  for (int i = 0; i < 16; i += 2) {
    t[i] = _mm512_unpacklo_epi32(r[i], r[i + 1]);
    t[i + 1] = _mm512_unpackhi_epi32(r[i], r[i + 1]);
  }
  for (int i = 0; i < 16; i += 4) {
    r[i] = _mm512_unpacklo_epi64(t[i], t[i + 2]);
    r[i + 1] = _mm512_unpackhi_epi64(t[i], t[i + 2]);
    r[i + 2] = _mm512_unpacklo_epi64(t[i + 1], t[i + 3]);
    r[i + 3] = _mm512_unpackhi_epi64(t[i + 1], t[i + 3]);
  }
  for (int i = 0; i < 4; ++i) {
    t[i] = _mm512_shuffle_i32x4(r[i], r[i + 4], 0x88);
    t[i + 4] = _mm512_shuffle_i32x4(r[i], r[i + 4], 0xdd);
    t[i + 8] = _mm512_shuffle_i32x4(r[i + 8], r[i + 12], 0x88);
    t[i + 12] = _mm512_shuffle_i32x4(r[i + 8], r[i + 12], 0xdd);
  }
  for (int i = 0; i < 8; ++i) {
    r[i] = _mm512_shuffle_i32x4(t[i], t[i + 8], 0x88);
    r[i + 8] = _mm512_shuffle_i32x4(t[i], t[i + 8], 0xdd);
  }
}

// Rows [0, rows) of x, contiguous along k, as columns of a panel: to[p * kMicroColumns + row].
// REQUIRES: rows <= 16.
template <class T>
void pack_lines(const T* x, i64 ld, i64 rows, i64 k, u32* to) {
  for (i64 p = 0; p < pairs_in(k); p += kLanes) {
    __m512i r[16];
    for (int i = 0; i < 16; ++i)
      r[i] = i < rows ? load32(x + i * ld + 2 * p, k - 2 * p) : _mm512_setzero_si512();
    transpose(r);
    const i64 n = std::min<i64>(kLanes, pairs_in(k) - p);
    for (int i = 0; i < 16; ++i)
      if (i < n) _mm512_storeu_si512(to + (p + i) * kMicroColumns, r[i]);
  }
}

// Sums of M rows, and of the columns that the masks select. Packed rows are kMicroRows apart.
template <int M, int V, bool packed>
void micro_tile(i64 pairs, const LeftPairs& a, const u32* b, i64 columns, const TileOutput& out, i64 at_row,
                i64 at_column) {
  __m512 sums[M][V];
  for (auto& row : sums)
    for (__m512& s : row) s = _mm512_setzero_ps();
  const u32* const left = a.data;
  for (i64 p = 0; p < pairs; ++p) {
    __m512bh right[V];
    for (int j = 0; j < V; ++j)
      right[j] = reinterpret_cast<__m512bh>(_mm512_loadu_si512(b + p * kMicroColumns + kLanes * j));
    for (int i = 0; i < M; ++i) {
      const u32 pair = packed ? left[p * kMicroRows + i] : left[i * a.row + p];
      const auto both = reinterpret_cast<__m512bh>(_mm512_set1_epi32(static_cast<int>(pair)));
      for (int j = 0; j < V; ++j) sums[i][j] = _mm512_dpbf16_ps(sums[i][j], both, right[j]);
    }
  }
  for (int j = 0; j < V; ++j) {
    const __mmask16 m = mask16(columns - kLanes * j);
    const i64 c = at_column + kLanes * j;
    const __m512 bias = out.bias ? _mm512_maskz_loadu_ps(m, out.bias + c) : _mm512_setzero_ps();
    for (int i = 0; i < M; ++i) {
      __m512 s = sums[i][j];
      if (out.before)
        s = _mm512_add_ps(_mm512_maskz_loadu_ps(m, out.before + (at_row + i) * out.ld_before + c), s);
      if (out.bias) s = _mm512_add_ps(s, bias);
      const i64 at = (at_row + i) * out.ld + c;
      if (out.bf16) {
        _mm256_mask_storeu_epi16(static_cast<bf16*>(out.y) + at, m,
                                 reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(s)));
      } else {
        _mm512_mask_storeu_ps(static_cast<float*>(out.y) + at, m, s);
      }
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

// All rows of a panel of V vectors of columns, of which the last may be cut.
template <int V>
void panel(i64 m, i64 pairs, const LeftPairs& a, const u32* b, i64 columns, const TileOutput& out,
           i64 at_column) {
  const bool packed = a.step != 1;
  for (i64 r = 0; r < m; r += kMicroRows) {
    const LeftPairs rows{a.data + (packed ? r * pairs : r * a.row), a.row, a.step};
    const i64 some = std::min(kMicroRows, m - r);
    if (packed) {
      micro_tile<V, true>(some, pairs, rows, b, columns, out, r, at_column);
    } else {
      micro_tile<V, false>(some, pairs, rows, b, columns, out, r, at_column);
    }
  }
}

}  // namespace

template <class T>
LeftPairs pack_left(const T* a, i64 ld, bool trans, i64 m, i64 k, u32* to) {
  const i64 pairs = pairs_in(k);
  if (!trans) {
    for (i64 r = 0; r < m; ++r)
      for (i64 p = 0; p < pairs; p += kLanes)
        _mm512_mask_storeu_epi32(to + r * pairs + p, mask16(pairs - p),
                                 load32(a + r * ld + 2 * p, k - 2 * p));
    return {to, pairs, 1};
  }
  static_assert(kLanes == 2 * kMicroRows);
  for (i64 p = 0; p < pairs; ++p) {
    const T* const x = a + 2 * p * ld;
    const T* const next = 2 * p + 1 < k ? x + ld : nullptr;
    for (i64 r = 0; r < m; r += kLanes) {
      const __m512i v = load_pairs(x + r, next ? next + r : nullptr, mask16(m - r));
      u32* const panel = to + (r * pairs) + p * kMicroRows;
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(panel), _mm512_castsi512_si256(v));
      if (r + kMicroRows < m)
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(panel + kMicroRows * pairs),
                            _mm512_extracti64x4_epi64(v, 1));
    }
  }
  return {to, 1, kMicroRows};
}

namespace {

// A panel of columns of b, whose rows are contiguous. A row of b lies far from the next one, which the
// hardware does not foresee.
template <class T>
void pack_columns(const T* b, i64 ld, i64 columns, i64 k, u32* to) {
  constexpr i64 kAhead = 16;  // rows
  __mmask16 masks[kVectors];
  for (int v = 0; v < kVectors; ++v) masks[v] = mask16(columns - kLanes * v);
  const i64 bytes = columns * static_cast<i64>(sizeof(T));
  for (i64 p = 0; p < pairs_in(k); ++p) {
    const T* const x = b + 2 * p * ld;
    const T* const next = 2 * p + 1 < k ? x + ld : nullptr;
    if (2 * p + 1 + kAhead < k)
      for (i64 at = 0; at < bytes; at += 64) {
        _mm_prefetch(reinterpret_cast<const char*>(x + kAhead * ld) + at, _MM_HINT_T0);
        _mm_prefetch(reinterpret_cast<const char*>(x + (kAhead + 1) * ld) + at, _MM_HINT_T0);
      }
    for (int v = 0; v < kVectors; ++v)
      _mm512_storeu_si512(to + p * kMicroColumns + kLanes * v,
                          load_pairs(x + kLanes * v, next ? next + kLanes * v : nullptr, masks[v]));
  }
}

}  // namespace

template <class T>
void pack_right(const T* b, i64 ld, bool trans, i64 n, i64 k, u32* to) {
  const i64 pairs = pairs_in(k);
  for (i64 c = 0; c < n; c += kMicroColumns, to += kMicroColumns * pairs) {
    const i64 columns = std::min(kMicroColumns, n - c);
    if (!trans) {
      pack_columns(b + c, ld, columns, k, to);
      continue;
    }
    for (i64 v = 0; v < kMicroColumns; v += kLanes) {
      const i64 here = std::clamp<i64>(columns - v, 0, kLanes);
      pack_lines(here > 0 ? b + (c + v) * ld : b, ld, here, k, to + v);
    }
  }
}

void multiply(i64 m, i64 n, i64 k, const LeftPairs& a, const u32* b, const TileOutput& out) {
  const i64 pairs = pairs_in(k);
  for (i64 c = 0; c < n; c += kMicroColumns, b += kMicroColumns * pairs) {
    const i64 columns = std::min(kMicroColumns, n - c);
    if (columns <= kLanes) {
      panel<1>(m, pairs, a, b, columns, out, c);
    } else if (columns <= 2 * kLanes) {
      panel<2>(m, pairs, a, b, columns, out, c);
    } else {
      panel<kVectors>(m, pairs, a, b, columns, out, c);
    }
  }
}

template LeftPairs pack_left(const float*, i64, bool, i64, i64, u32*);
template LeftPairs pack_left(const bf16*, i64, bool, i64, i64, u32*);
template void pack_right(const float*, i64, bool, i64, i64, u32*);
template void pack_right(const bf16*, i64, bool, i64, i64, u32*);

}  // namespace redco::kernels::avx512_bf16
