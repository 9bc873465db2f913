// Products of pairs by TDPBF16PS, which multiplies a tile of 16 rows x 16 pairs by one of 16 pairs x 16
// columns. A packed left operand has panels of 16 rows, each a sequence of such tiles. Sums of a micro-tile
// of 32 x 32 stay in 4 tile registers. (Intel 64 and IA-32 Architectures Software Developer's Manual, volume
// 1, chapter 18.)
#include <array>

#include "kernels/cpu/avx512_bf16/pairs.h"

namespace redco::kernels {
namespace {

constexpr i64 kTile = 16;                    // rows, pairs and columns
constexpr i64 kTileSize = kTile * kTile;     // u32, or sums
constexpr i64 kBytes = kTile * sizeof(u32);  // of a row of a tile
constexpr i64 kSide = 2 * kTile;             // of a micro-tile
static_assert(AmxTiles::kRows == kTile && AmxTiles::kColumns == kSide && AmxTiles::kPairs == kTile);

// The operand of LDTILECFG: all 8 registers hold 16 rows of 64 bytes.
struct alignas(64) TileConfig {
  std::uint8_t palette = 1, start_row = 0;
  std::array<std::uint8_t, 14> reserved{};
  std::array<std::uint16_t, 16> row_bytes{kBytes, kBytes, kBytes, kBytes, kBytes, kBytes, kBytes, kBytes};
  std::array<std::uint8_t, 16> rows{kTile, kTile, kTile, kTile, kTile, kTile, kTile, kTile};
};
static_assert(sizeof(TileConfig) == 64);

// Some compilers don't know that a tile is loaded from memory.
inline void stores_are_done() { asm volatile("" ::: "memory"); }

struct MicroTile {
  i64 row, column, rows, columns;
};

// The sums before, as a whole micro-tile; zero outside of the matrix.
void copy_before(const MicroTile& t, const TileOutput& out, float* sums) {
  for (i64 i = 0; i < kSide; ++i)
    for (i64 v = 0; v < kSide; v += kLanes) {
      const __mmask16 m = i < t.rows ? mask16(t.columns - v) : __mmask16{0};
      _mm512_store_ps(sums + i * kSide + v,
                      _mm512_maskz_loadu_ps(m, out.before + (t.row + i) * out.ld_before + t.column + v));
    }
}

void write_part(const MicroTile& t, const TileOutput& out, const float* sums) {
  for (i64 v = 0; v < t.columns; v += kLanes) {
    const __mmask16 m = mask16(t.columns - v);
    const i64 c = t.column + v;
    const __m512 bias = load_bias(out, c, m);
    for (i64 i = 0; i < t.rows; ++i)
      write(_mm512_load_ps(sums + i * kSide + v), bias, m, out, (t.row + i) * out.ld + c);
  }
}

// Tile registers: sums 0 to 3, left operand 4 and 5, right operand 6 and 7. R x C tiles of sums.
template <int R, int C>
inline void load_sums(const float* x, i64 bytes) {
  const auto* const p = reinterpret_cast<const char*>(x);
  _tile_loadd(0, p, bytes);
  if constexpr (C == 2) _tile_loadd(1, p + kBytes, bytes);
  if constexpr (R == 2) _tile_loadd(2, p + kTile * bytes, bytes);
  if constexpr (R == 2 && C == 2) _tile_loadd(3, p + kTile * bytes + kBytes, bytes);
}
template <int R, int C>
inline void store_sums(float* x, i64 bytes) {
  auto* const p = reinterpret_cast<char*>(x);
  _tile_stored(0, p, bytes);
  if constexpr (C == 2) _tile_stored(1, p + kBytes, bytes);
  if constexpr (R == 2) _tile_stored(2, p + kTile * bytes, bytes);
  if constexpr (R == 2 && C == 2) _tile_stored(3, p + kTile * bytes + kBytes, bytes);
}

template <int R, int C>
void micro_tile(i64 pairs, const LeftPairs& a, const u32* b, const MicroTile& t, const TileOutput& out) {
  constexpr i64 kFloat = sizeof(float);
  alignas(64) std::array<float, kSide * kSide> own;  // NOLINT: written below
  const bool whole = t.rows == R * kTile && t.columns == C * kTile;
  if (!out.before) {
    _tile_zero(0);
    if constexpr (C == 2) _tile_zero(1);
    if constexpr (R == 2) _tile_zero(2);
    if constexpr (R == 2 && C == 2) _tile_zero(3);
  } else if (whole) {
    load_sums<R, C>(out.before + t.row * out.ld_before + t.column, out.ld_before * kFloat);
  } else {
    copy_before(t, out, own.data());
    stores_are_done();
    load_sums<R, C>(own.data(), kSide * kFloat);
  }
  const bool packed = a.step != 1;
  const i64 row_bytes = packed ? kBytes : a.row * static_cast<i64>(sizeof(u32));
  const i64 step = packed ? kTileSize : kTile, below = kTile * a.row;
  const u32* left = a.data + t.row * a.row;
  for (i64 p = 0; p < pairs; p += kTile, left += step, b += kTile * kSide) {
    _tile_loadd(6, b, kSide * sizeof(u32));
    _tile_loadd(4, left, row_bytes);
    _tile_dpbf16ps(0, 4, 6);
    if constexpr (C == 2) {
      _tile_loadd(7, b + kTile, kSide * sizeof(u32));
      _tile_dpbf16ps(1, 4, 7);
    }
    if constexpr (R == 2) {
      _tile_loadd(5, left + below, row_bytes);
      _tile_dpbf16ps(2, 5, 6);
      if constexpr (C == 2) _tile_dpbf16ps(3, 5, 7);
    }
  }
  if (whole && !out.bf16 && !out.bias)
    return store_sums<R, C>(static_cast<float*>(out.y) + t.row * out.ld + t.column, out.ld * kFloat);
  store_sums<R, C>(own.data(), kSide * kFloat);
  write_part(t, out, own.data());
}

}  // namespace

template <class T>
LeftPairs AmxTiles::pack_left(const T* a, i64 ld, bool trans, i64 m, i64 k, u32* to) {
  const i64 pairs = pairs_in(k);
  const LeftPairs packed{to, pairs, kTile};
  for (i64 r = 0; r < m; r += kTile) {
    const i64 rows = std::min(kTile, m - r);
    for (i64 p = 0; p < pairs; p += kTile, to += kTileSize) {
      __m512i lines[kTile];
      for (i64 i = 0; i < kTile; ++i) {
        if (!trans) {
          lines[i] = i < rows ? load32(a + (r + i) * ld + 2 * p, k - 2 * p) : _mm512_setzero_si512();
        } else {
          const i64 first = 2 * (p + i);
          const T* const x = a + first * ld + r;
          lines[i] = first < k ? load_pairs(x, first + 1 < k ? x + ld : nullptr, mask16(rows))
                               : _mm512_setzero_si512();
        }
      }
      if (trans) transpose(lines);
      for (i64 i = 0; i < kTile; ++i) _mm512_storeu_si512(to + i * kTile, lines[i]);
    }
  }
  return packed;
}

template <class T>
void AmxTiles::pack_right(const T* b, i64 ld, bool trans, i64 n, i64 k, u32* to) {
  pack_panels<AmxTiles>(b, ld, trans, n, k, to);
}

void AmxTiles::multiply(i64 m, i64 n, i64 k, const LeftPairs& a, const u32* b, const TileOutput& out) {
  static constexpr TileConfig kConfig;
  const i64 pairs = pairs_in(k);
  stores_are_done();
  _tile_loadconfig(&kConfig);
  for (i64 c = 0; c < n; c += kSide, b += kSide * pairs)
    for (i64 r = 0; r < m; r += kSide) {
      const MicroTile t{r, c, std::min(kSide, m - r), std::min(kSide, n - c)};
      if (t.rows > kTile) {
        t.columns > kTile ? micro_tile<2, 2>(pairs, a, b, t, out) : micro_tile<2, 1>(pairs, a, b, t, out);
      } else {
        t.columns > kTile ? micro_tile<1, 2>(pairs, a, b, t, out) : micro_tile<1, 1>(pairs, a, b, t, out);
      }
    }
  _tile_release();
}

template LeftPairs AmxTiles::pack_left(const float*, i64, bool, i64, i64, u32*);
template LeftPairs AmxTiles::pack_left(const bf16*, i64, bool, i64, i64, u32*);
template void AmxTiles::pack_right(const float*, i64, bool, i64, i64, u32*);
template void AmxTiles::pack_right(const bf16*, i64, bool, i64, i64, u32*);

}  // namespace redco::kernels
