// Tiles of products of fp32. A micro-tile of kRows x kColumns sums stays in registers while k passes. The
// right operand is packed in panels of kColumns columns, the left one in panels of kRows rows, unless it is
// read only a few times.
#include <utility>

#include "kernels/cpu/isa/few_rows.h"
#include "kernels/cpu/isa/ranges.h"
#include "kernels/cpu/products/micro_tiles.h"

namespace redco::kernels::REDCO_ISA {
namespace {

typedef float Vector __attribute__((vector_size(kBytes)));
constexpr int W = kBytes / 4;
// The sums, a row of the right operand and one element of the left one fill the registers.
constexpr int kVectors = kRegisters == 32 ? 3 : 2, kColumns = kVectors * W, kRows = kRegisters == 32 ? 8 : 6;
static_assert(kTileUnit % kColumns == 0 && kTileUnit % kRows == 0);
constexpr int kBlock = 8;  // rows that are transposed at a time
static_assert(kRows <= kBlock);

REDCO_INLINE Vector load(const float* p) {
  Vector v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}
REDCO_INLINE void store(float* p, const Vector& v) { __builtin_memcpy(p, &v, sizeof v); }

// Swaps blocks of S lanes between rows i and i + S: after S = N / 2, ..., 1 each N lanes are transposed.
template <int S, bool kUpper, int... I>
REDCO_INLINE Vector swapped(const Vector& a, const Vector& b, std::integer_sequence<int, I...>) {
  return __builtin_shufflevector(a, b, ((I & S) ? W + I - (kUpper ? 0 : S) : I + (kUpper ? S : 0))...);
}
template <int S, int N>
REDCO_INLINE void transpose(Vector (&r)[N]) {
  constexpr auto kLanes = std::make_integer_sequence<int, W>();
#pragma GCC unroll 16
  for (int i = 0; i < N; ++i) {
    if (i & S) continue;
    const Vector a = r[i], b = r[i + S];
    r[i] = swapped<S, false>(a, b, kLanes);
    r[i + S] = swapped<S, true>(a, b, kLanes);
  }
  if constexpr (S > 1) transpose<S / 2>(r);
}

// Rows [0, rows) of x, contiguous along k, as columns of a panel: to[p * kColumns + row]. rows <= W.
void pack_lines(const float* x, i64 ld, i64 rows, i64 k, float* to) {
  i64 p = 0;
  if (rows == W)
    for (; p + W <= k; p += W) {
      Vector r[W];
      for (int i = 0; i < W; ++i) r[i] = load(x + i * ld + p);
      transpose<W / 2>(r);
      for (int i = 0; i < W; ++i) store(to + (p + i) * kColumns, r[i]);
    }
  for (; p < k; ++p)
    for (i64 i = 0; i < W; ++i) to[p * kColumns + i] = i < rows ? x[i * ld + p] : 0;
}

// At most kStrip columns of b, whose rows are contiguous, as panels. Each row is read in whole lines of the
// cache. Rows are prefetched: each lies far from the one before, which the hardware does not foresee.
void pack_columns(const float* b, i64 ld, i64 columns, i64 k, float* to) {
  constexpr i64 kAhead = 16, kLine = 16;  // rows; elements
  const i64 whole = columns / kColumns * kColumns;
  for (i64 p = 0; p < k; ++p, b += ld) {
    if (p + kAhead < k)
      for (i64 c = 0; c < columns; c += kLine) __builtin_prefetch(b + kAhead * ld + c, 0, 2);
    float* const panel = to + p * kColumns;
    for (i64 c = 0; c < whole; c += kColumns)
      __builtin_memcpy(panel + c * k, b + c, kColumns * sizeof(float));
    for (i64 c = whole; c < columns; c += kColumns)
      for (i64 i = 0; i < kColumns; ++i) panel[c * k + i] = c + i < columns ? b[c + i] : 0;
  }
}

// Rows [0, rows) of a as a panel: to[p * kRows + row].
void pack_rows(const float* a, i64 ld, i64 rows, i64 k, float* to) {
  i64 p = 0;
  if constexpr (kBlock <= W)
    for (; rows >= kRows && p + W <= k; p += W) {
      Vector r[kBlock] = {};
#pragma GCC unroll 8
      for (int i = 0; i < kRows; ++i) r[i] = load(a + i * ld + p);
      transpose<kBlock / 2>(r);
#pragma GCC unroll 2
      for (int part = 0; part < W; part += kBlock)
#pragma GCC unroll 8
        for (int i = 0; i < kBlock; ++i)
          __builtin_memcpy(to + (p + part + i) * kRows, reinterpret_cast<const float*>(&r[i]) + part,
                           kRows * sizeof(float));
    }
  const i64 here = rows < kRows ? rows : kRows;
  for (; p < k; ++p)
    for (i64 i = 0; i < here; ++i) to[p * kRows + i] = a[i * ld + p];
}

// Columns [column, column + columns) are a panel, one of `panels`. There may be more rows than one micro-tile
// has.
struct MicroTile {
  i64 row, rows, column, columns, panels;
};

// A row of y from sums + before + bias.
void write(float* sums, i64 row, const MicroTile& t, const TileOutput& o) {
  const i64 n = t.columns;
  if (o.before) {
    const float* const before = o.before + row * o.ld_before + t.column;
    for (i64 i = 0; i < n; ++i) sums[i] = before[i] + sums[i];
  }
  for (i64 i = 0; o.bias && i < n; ++i) sums[i] += o.bias[t.column + i];
  const i64 at = row * o.ld + t.column;
  if (o.bf16) {
    for (i64 i = 0; i < n; ++i) put(static_cast<bf16*>(o.y) + at, i, sums[i]);
  } else {
    for (i64 i = 0; i < n; ++i) static_cast<float*>(o.y)[at + i] = sums[i];
  }
}

// M rows and V vectors of columns. Unrolled, or the compiler keeps the sums in memory.
template <int M, int V, bool packed>
void micro_tile(const MicroTile& t, i64 k, const Left<float>& a, const float* b, const TileOutput& o) {
  Vector sums[M][V] = {};
  const float* const left = a.data;
  // The hardware does not foresee the rows that follow: too many short streams. Each panel prefetches a part.
  const float* ahead = left + M * a.row + t.column / kColumns * (k / t.panels);
  i64 next = 0;
  for (i64 p = 0; p < k; ++p) {
    if (!packed && p == next) {
#pragma GCC unroll 8
      for (int i = 0; i < M; ++i) __builtin_prefetch(ahead + i * a.row, 0, 2);
      ahead += 16;
      next += 16 * t.panels;
    }
    Vector right[V];
#pragma GCC unroll 3
    for (int j = 0; j < V; ++j) right[j] = load(b + p * kColumns + j * W);
#pragma GCC unroll 8
    for (int i = 0; i < M; ++i) {
      const float x = packed ? left[p * kRows + i] : left[i * a.row + p];
#pragma GCC unroll 3
      for (int j = 0; j < V; ++j) sums[i][j] += x * right[j];
    }
  }
  if (o.bf16 || t.columns < V * W) {
    float rows[M][V * W];
#pragma GCC unroll 8
    for (int i = 0; i < M; ++i)
#pragma GCC unroll 3
      for (int j = 0; j < V; ++j) store(rows[i] + j * W, sums[i][j]);
    for (int i = 0; i < M; ++i) write(rows[i], t.row + i, t, o);
    return;
  }
  const float* const bias = o.bias ? o.bias + t.column : nullptr;
#pragma GCC unroll 8
  for (int i = 0; i < M; ++i) {
    const float* const before = o.before ? o.before + (t.row + i) * o.ld_before + t.column : nullptr;
    float* const y = static_cast<float*>(o.y) + (t.row + i) * o.ld + t.column;
#pragma GCC unroll 3
    for (int j = 0; j < V; ++j) {
      Vector s = sums[i][j];
      if (before) s = load(before + j * W) + s;
      if (bias) s += load(bias + j * W);
      store(y + j * W, s);
    }
  }
}

template <int V, bool packed>
void micro_tile(const MicroTile& t, i64 k, const Left<float>& a, const float* b, const TileOutput& o) {
  if (t.rows >= kRows) return micro_tile<kRows, V, packed>(t, k, a, b, o);
  with_rows(t.rows, [&]<int M>() { micro_tile<M, V, packed>(t, k, a, b, o); });
}

template <bool packed>
void micro_tile(const MicroTile& t, i64 k, const Left<float>& a, const float* b, const TileOutput& o) {
  if (t.columns <= W) return micro_tile<1, packed>(t, k, a, b, o);
  if (t.columns <= 2 * W) return micro_tile<2, packed>(t, k, a, b, o);
  micro_tile<kVectors, packed>(t, k, a, b, o);
}

}  // namespace

Left<float> pack_left(const float* a, i64 ld, bool trans, i64 m, i64 k, float* to) {
  const Left<float> packed{to, 1, kRows};
  if (trans) {
    for (i64 p = 0; p < k; ++p, a += ld) {
      i64 r = 0;
      for (; r + kRows <= m; r += kRows)
        __builtin_memcpy(to + r * k + p * kRows, a + r, kRows * sizeof(float));
      for (i64 i = r; i < m; ++i) to[r * k + p * kRows + i - r] = a[i];
    }
    return packed;
  }
  for (i64 r = 0; r < m; r += kRows, a += kRows * ld, to += kRows * k) pack_rows(a, ld, m - r, k, to);
  return packed;
}

void pack_right(const float* b, i64 ld, bool trans, i64 n, i64 k, float* to) {
  if (!trans) {
    for (i64 c = 0; c < n; c += kStrip)
      pack_columns(b + c, ld, n - c < kStrip ? n - c : kStrip, k, to + c * k);
    return;
  }
  for (i64 c = 0; c < n; c += kColumns, to += kColumns * k) {
    const i64 columns = n - c < kColumns ? n - c : kColumns;
    for (i64 v = 0; v < kColumns; v += W) {
      const i64 here = columns - v < 0 ? 0 : columns - v < W ? columns - v : W;
      pack_lines(here > 0 ? b + (c + v) * ld : b, ld, here, k, to + v);
    }
  }
}

void multiply_tile(i64 m, i64 n, i64 k, const Left<float>& a, const float* b, const TileOutput& o) {
  const i64 panels = (n + kColumns - 1) / kColumns;
  const auto part = [&](i64 row, i64 column) {
    return MicroTile{row, m - row, column, n - column < kColumns ? n - column : kColumns, panels};
  };
  // Row by row, so that few pages of y are written at a time, through as many panels as stay in the cache.
  const auto multiply = [&]<bool packed>(i64 columns) {
    for (i64 first = 0; first < n; first += columns) {
      const i64 last = n - first < columns ? n : first + columns;
      for (i64 r = 0; r < m; r += kRows)
        for (i64 c = first; c < last; c += kColumns)
          micro_tile<packed>(part(r, c), k, {a.data + r * (packed ? k : a.row), a.row, a.step}, b + c * k, o);
    }
  };
  // Rows that are read from memory are used for all panels together.
  if (a.step == 1) return multiply.template operator()<false>(n);
  const i64 near = kNear / (k * kColumns);
  multiply.template operator()<true>(near > 1 ? near * kColumns : kColumns);
}

void transpose_sums(const float* x, i64 rows, i64 columns, const float* bias, float* y, i64 ld) {
  for (i64 r = 0; r < rows; r += W)
    for (i64 c = 0; c < columns; c += W) {
      if (r + W <= rows && c + W <= columns) {
        Vector v[W];
        for (int i = 0; i < W; ++i) v[i] = load(x + (r + i) * columns + c);
        transpose<W / 2>(v);
        for (int i = 0; i < W; ++i) store(y + (c + i) * ld + r, bias ? v[i] + load(bias + r) : v[i]);
        continue;
      }
      const i64 last_row = r + W < rows ? r + W : rows, last_column = c + W < columns ? c + W : columns;
      for (i64 j = c; j < last_column; ++j)
        for (i64 i = r; i < last_row; ++i) {
          const float sum = x[i * columns + j];
          y[j * ld + i] = bias ? sum + bias[i] : sum;
        }
    }
}

}  // namespace redco::kernels::REDCO_ISA
