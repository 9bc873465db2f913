#include "kernels/cpu/products/gemm.h"

#include <algorithm>
#include <cstdlib>

#include "base/error.h"
#include "kernels/cpu/blas.h"
#include "kernels/cpu/isa/ranges.h"
#include "kernels/cpu/pool.h"
#include "kernels/cpu/products/limits.h"
#include "kernels/isa.h"

namespace redco::kernels {
namespace {

// One tile or one small product on the calling thread; m, n > 0.
template <class T>
void gemm_here(bool ta, bool tb, i64 m, i64 n, i64 k, T alpha, const T* a, i64 lda, const T* b, i64 ldb,
               T beta, T* c, i64 ldc) {
  cblas_gemm(ta, tb, m, n, k, alpha, a, std::max<i64>(lda, 1), b, std::max<i64>(ldb, 1), beta, c, ldc);
}

template <class T>
void scale_only(i64 m, i64 n, T beta, T* c, i64 ldc) {
  for (i64 i = 0; i < m; ++i)
    for (i64 j = 0; j < n; ++j) c[i * ldc + j] = beta == 0 ? T(0) : beta * c[i * ldc + j];
}

// How a product is cut into tiles, which threads compute with BLAS. Borders depend only on the shape.
// Measured on GPT-2's products (m = 1024; n, k of 768 .. 50257), relative to the rate of one thread in one
// large call: tiles of 512 x 384 reach 93-95 %, 256 x 384 88-92 % (they repack more), 128 x 256 80-88 %.
// Small products are split further to use more cores.
struct Tiling {
  i64 rows, cols;
};
Tiling tiling_of(i64 m, i64 n) {
  constexpr i64 kWanted = 8, kSmallest = 192;  // number of tiles; shortest long side that may still be halved
  Tiling t{std::min<i64>(512, m), std::min<i64>(384, n)};
  while (ceil_div(m, t.rows) * ceil_div(n, t.cols) < kWanted && std::max(t.rows, t.cols) > kSmallest) {
    i64& side = t.rows >= t.cols ? t.rows : t.cols;
    side = ceil_div(side, 32) * 16;  // half of it, a multiple of the 16 rows of the microkernels
  }
  return t;
}

}  // namespace

template <class T>
void gemm(bool ta, bool tb, i64 m, i64 n, i64 k, T alpha, const T* a, i64 lda, const T* b, i64 ldb, T beta,
          T* c, i64 ldc) {
  if (m <= 0 || n <= 0) return;
  if (k <= 0 || alpha == 0) return scale_only(m, n, beta, c, ldc);
  const i64 work =
      m * n * std::min<i64>(k, i64{1} << 20) / 8;  // a multiply-add is much cheaper than an element visit
  if (m <= kFewRows && !ta) {
    if (tb) {
      constexpr i64 kRowsOfB = 64;
      return for_each(ceil_div(n, kRowsOfB), n * k, [&](i64 t) {
        const i64 j = t * kRowsOfB;
        REDCO_ISA_CALL(rows_times_bt(m, std::min(kRowsOfB, n - j), k, alpha, a, lda, b + j * ldb, ldb, beta,
                                     c + j, ldc));
      });
    }
    constexpr i64 kColumns = 256;
    return for_each(ceil_div(n, kColumns), n * k, [&](i64 t) {
      const i64 j = t * kColumns;
      REDCO_ISA_CALL(
          rows_times_b(m, std::min(kColumns, n - j), k, alpha, a, lda, b + j, ldb, beta, c + j, ldc));
    });
  }
  const Tiling t = tiling_of(m, n);
  const i64 down = ceil_div(m, t.rows), across = ceil_div(n, t.cols);
  // Tiles are numbered down the columns, so that concurrent threads share the columns of b.
  for_each_dynamic(down * across, work, [&](i64 i) {
    const i64 r = i % down * t.rows, s = i / down * t.cols;
    gemm_here(ta, tb, std::min(t.rows, m - r), std::min(t.cols, n - s), k, alpha, a + (ta ? r : r * lda), lda,
              b + (tb ? s * ldb : s), ldb, beta, c + r * ldc + s, ldc);
  });
}

template <class T>
void gemm_batch(i64 batch, bool ta, bool tb, i64 m, i64 n, i64 k, T alpha, const T* a, i64 lda, i64 a_stride,
                const T* b, i64 ldb, i64 b_stride, T beta, T* c, i64 ldc, i64 c_stride) {
  if (batch <= 0 || m <= 0 || n <= 0) return;
  if (batch == 1) return gemm(ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
  constexpr i64 kLarge = i64{1} << 22;  // multiply-adds: a matrix large enough to use the whole pool
  const bool large = m * n >= (512 * 256) && m * n * k >= kLarge;
  if (large && batch < 16) {
    for (i64 i = 0; i < batch; ++i)
      gemm(ta, tb, m, n, k, alpha, a + i * a_stride, lda, b + i * b_stride, ldb, beta, c + i * c_stride, ldc);
    return;
  }
  // Nested: each product runs its tiles on the calling thread, so that its bits equal those of gemm().
  for_each_dynamic(batch, batch * std::max<i64>(1, m * n * k / 8), [&](i64 i) {
    gemm(ta, tb, m, n, k, alpha, a + i * a_stride, lda, b + i * b_stride, ldb, beta, c + i * c_stride, ldc);
  });
}

#define INSTANTIATE(T)                                                                                       \
  template void gemm(bool, bool, i64, i64, i64, T, const T*, i64, const T*, i64, T, T*, i64);                \
  template void gemm_batch(i64, bool, bool, i64, i64, i64, T, const T*, i64, i64, const T*, i64, i64, T, T*, \
                           i64, i64);
INSTANTIATE(float)
INSTANTIATE(double)
#undef INSTANTIATE

}  // namespace redco::kernels
