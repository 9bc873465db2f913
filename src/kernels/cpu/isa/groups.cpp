// Groups of 8-bit and 4-bit weights: conversions, and products of at most 8 rows with a matrix of groups,
// which are expanded in registers.
#include "kernels/cpu/groups.h"

#include "kernels/cpu/isa/few_rows.h"
#include "kernels/cpu/isa/group_fit.h"
#include "kernels/cpu/isa/ranges.h"

namespace redco::kernels::REDCO_ISA {
namespace {

constexpr int W = kBytes / 4, kVectors = kGroup / W;
using Vector = Floats;

// Values [v W, v W + W) of a group, without scale and minimum.
REDCO_INLINE Vector values(const Group8& g, int v) { return floats_of(g.values + v * W); }
REDCO_INLINE Vector values(const Group4& g, int v) {
  constexpr int kHalf = kVectors / 2;  // vectors of low nibbles
  return floats_of_nibbles(g.values + v % kHalf * W, v >= kHalf);
}

// The numbers that turn values of a group into weights.
struct Scale8 {
  float scale;
};
struct Line4 {
  float scale, minimum;
};
REDCO_INLINE Scale8 line_of(const Group8& g) { return {scale_of(g.scale)}; }
REDCO_INLINE Line4 line_of(const Group4& g) {
  Line4 line;
  scale_pair(&g, line.scale, line.minimum);
  return line;
}
REDCO_INLINE Vector weights(const Group8& g, int v, const Scale8& line) { return values(g, v) * line.scale; }
REDCO_INLINE Vector weights(const Group4& g, int v, const Line4& line) {
  return values(g, v) * line.scale + line.minimum;  // the product is exact
}

template <class G>
REDCO_INLINE void expand(const G& g, float* y) {
  const auto line = line_of(g);
#pragma GCC unroll 8
  for (int v = 0; v < kVectors; ++v) {
    const Vector w = weights(g, v, line);
    __builtin_memcpy(y + v * W, &w, sizeof w);
  }
}

void compress(const float* x, i64, Group8& g) {
  float most = 0;
  for (i64 i = 0; i < kGroup; ++i) most = abs_(x[i]) > most ? abs_(x[i]) : most;
  const u32 bits = all_finite(x) ? fp16_bits(to_bits(most / 127.0f)) : kNan16;
  const float scale = fp16_value(bits);
  g.scale = static_cast<u16>(bits);
  for (i64 i = 0; i < kGroup; ++i) g.values[i] = static_cast<std::int8_t>(nearest(x[i], scale, -127, 127));
}

void compress(const float* x, i64 n, Group4& g) { fit_group(x, n, g); }

template <class G, int M, int N>
inline void dots(i64 k, const float* a, i64 lda, const G* b, i64 ahead, float* c, i64 ldc) {
  Vector acc[M * N] = {};
  const i64 row = groups_in(k), whole = k / kGroup;
  for (i64 g = 0; g < whole; ++g) {
    decltype(line_of(b[0])) line[N];
#pragma GCC unroll 8
    for (int j = 0; j < N; ++j) {
      line[j] = line_of(b[j * row + g]);
      __builtin_prefetch(b + (ahead + j) * row + g, 0, 2);
    }
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      Vector w[N];
#pragma GCC unroll 8
      for (int j = 0; j < N; ++j) w[j] = weights(b[j * row + g], v, line[j]);
#pragma GCC unroll 8
      for (int i = 0; i < M; ++i) {
        Vector x;
        __builtin_memcpy(&x, a + i * lda + g * kGroup + v * W, sizeof x);
        if constexpr (N > 1) REDCO_KEEP(x);  // loaded once, not for each addition
#pragma GCC unroll 8
        for (int j = 0; j < N; ++j) acc[i * N + j] += x * w[j];
      }
    }
  }
  float sums[M * N];
#pragma GCC unroll 32
  for (int i = 0; i < M * N; ++i) {
    const Vector one[1] = {acc[i]};
    sum_each<float>(one, sums + i);
  }
  for (int j = 0; j < N; ++j) {
    float last[kGroup] = {};
    if (whole < row) expand(b[j * row + whole], last);
    for (int i = 0; i < M; ++i) {
      float s = sums[i * N + j];
      for (i64 q = whole * kGroup; q < k; ++q) s += a[i * lda + q] * last[q - whole * kGroup];
      c[i * ldc + j] = s;
    }
  }
}

template <class G, int M>
inline void dots_m(i64 n, i64 k, const float* a, i64 lda, const G* b, float* c, i64 ldc) {
  constexpr int N = kRegisters == 32 ? (M <= 5 ? 4 : 2) : M <= 2 ? 4 : M <= 4 ? 2 : 1;
  const i64 row = groups_in(k), ahead = rows_ahead(N, row * static_cast<i64>(sizeof(G)));
  i64 j = 0;
  for (; j + N <= n; j += N) dots<G, M, N>(k, a, lda, b + j * row, ahead, c + j, ldc);
  for (; j < n; ++j) dots<G, M, 1>(k, a, lda, b + j * row, ahead, c + j, ldc);
}

}  // namespace

template <class G>
void to_groups(const float* x, G* y, i64 n) {
  for (i64 g = 0; g < groups_in(n); ++g) {
    float padded[kGroup] = {};
    const i64 size = n - g * kGroup < kGroup ? n - g * kGroup : kGroup;
    __builtin_memcpy(padded, x + g * kGroup, static_cast<std::size_t>(size) * sizeof(float));
    compress(padded, size, y[g]);
  }
}

template <class G>
void from_groups(const G* x, i64 first, float* y, i64 n) {
  x += first / kGroup;
  i64 g = 0;
  for (; (g + 1) * kGroup <= n; ++g) expand(x[g], y + g * kGroup);
  if (g * kGroup == n) return;
  float last[kGroup];
  expand(x[g], last);
  __builtin_memcpy(y + g * kGroup, last, static_cast<std::size_t>(n - g * kGroup) * sizeof(float));
}

template <class G>
void rows_times_groups(i64 m, i64 n, i64 k, const float* a, i64 lda, const G* b, float* c, i64 ldc) {
  with_rows(m, [&]<int M>() { dots_m<G, M>(n, k, a, lda, b, c, ldc); });
}

#define INSTANTIATE(G)                                   \
  template void to_groups(const float*, G*, i64);        \
  template void from_groups(const G*, i64, float*, i64); \
  template void rows_times_groups(i64, i64, i64, const float*, i64, const G*, float*, i64);
INSTANTIATE(Group8)
INSTANTIATE(Group4)
#undef INSTANTIATE

}  // namespace redco::kernels::REDCO_ISA
