// What the instruction sets that multiply pairs of bf16 (kernels/cpu/products/bf16_tiles.h) have in common:
// packing of operands, writing of sums. Compiled for AVX512-BF16.
#pragma once

#include <immintrin.h>

#include <algorithm>

#include "kernels/cpu/products/bf16_tiles.h"

namespace redco::kernels {
namespace {

constexpr int kLanes = 16;

// The first n lanes.
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

// Writes sums of a tile, plus a bias, to elements `at` of y on.
inline void write(__m512 sums, __m512 bias, __mmask16 m, const TileOutput& out, i64 at) {
  if (out.bias) sums = _mm512_add_ps(sums, bias);
  if (out.bf16) {
    _mm256_mask_storeu_epi16(static_cast<bf16*>(out.y) + at, m,
                             reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(sums)));
  } else {
    _mm512_mask_storeu_ps(static_cast<float*>(out.y) + at, m, sums);
  }
}
inline __m512 load_bias(const TileOutput& out, i64 column, __mmask16 m) {
  return out.bias ? _mm512_maskz_loadu_ps(m, out.bias + column) : _mm512_setzero_ps();
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

// Rows [0, rows) of x, contiguous along k, as columns of a panel: to[p * Sizes::kColumns + row].
// REQUIRES: rows <= 16.
template <class Sizes, class T>
void pack_lines(const T* x, i64 ld, i64 rows, i64 k, u32* to) {
  for (i64 p = 0; p < Sizes::pairs_in(k); p += kLanes) {
    __m512i r[16];
    for (int i = 0; i < 16; ++i)
      r[i] = i < rows ? load32(x + i * ld + 2 * p, k - 2 * p) : _mm512_setzero_si512();
    transpose(r);
    const i64 n = std::min<i64>(kLanes, Sizes::pairs_in(k) - p);
    for (int i = 0; i < 16; ++i)
      if (i < n) _mm512_storeu_si512(to + (p + i) * Sizes::kColumns, r[i]);
  }
}

// At most kStrip columns of b, whose rows are contiguous, as panels. Each row is read in whole lines of the
// cache. Rows are prefetched: each lies far from the one before, which the hardware does not foresee.
template <class Sizes, class T>
void pack_columns(const T* b, i64 ld, i64 columns, i64 k, u32* to) {
  constexpr i64 kAhead = 16;  // rows
  constexpr i64 kMost = kStrip / kLanes, kVectors = Sizes::kColumns / kLanes;
  static_assert(kStrip % Sizes::kColumns == 0);
  const i64 panel = Sizes::kColumns * Sizes::pairs_in(k), pairs = (k + 1) / 2;
  const i64 panels = ceil_div(columns, Sizes::kColumns), bytes = columns * static_cast<i64>(sizeof(T));
  for (i64 p = 0; p < pairs; ++p) {
    const T* const x = b + 2 * p * ld;
    const T* const next = 2 * p + 1 < k ? x + ld : nullptr;
    if (2 * p + 1 + kAhead < k)
      for (i64 at = 0; at < bytes; at += 64) {
        _mm_prefetch(reinterpret_cast<const char*>(x + kAhead * ld) + at, _MM_HINT_T1);
        _mm_prefetch(reinterpret_cast<const char*>(x + (kAhead + 1) * ld) + at, _MM_HINT_T1);
      }
#pragma GCC unroll 6
    for (i64 v = 0; v < kMost; ++v) {
      if (v / kVectors >= panels) break;
      _mm512_storeu_si512(
          to + v / kVectors * panel + p * Sizes::kColumns + v % kVectors * kLanes,
          load_pairs(x + kLanes * v, next ? next + kLanes * v : nullptr, mask16(columns - kLanes * v)));
    }
  }
  for (i64 i = 0; i < panels; ++i)
    std::fill(to + i * panel + pairs * Sizes::kColumns, to + (i + 1) * panel, 0);
}

template <class Sizes, class T>
void pack_panels(const T* b, i64 ld, bool trans, i64 n, i64 k, u32* to) {
  const i64 pairs = Sizes::pairs_in(k);
  if (!trans) {
    for (i64 c = 0; c < n; c += kStrip)
      pack_columns<Sizes>(b + c, ld, std::min(kStrip, n - c), k, to + c * pairs);
    return;
  }
  for (i64 c = 0; c < n; c += Sizes::kColumns, to += Sizes::kColumns * pairs) {
    const i64 columns = std::min(Sizes::kColumns, n - c);
    for (i64 v = 0; v < Sizes::kColumns; v += kLanes) {
      const i64 here = std::clamp<i64>(columns - v, 0, kLanes);
      pack_lines<Sizes>(here > 0 ? b + (c + v) * ld : b, ld, here, k, to + v);
    }
  }
}

}  // namespace
}  // namespace redco::kernels
