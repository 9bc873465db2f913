// cblas by type. Every product redco makes is single-threaded inside OpenBLAS: the pool's threads call it on
// tiles.
#pragma once

#include <cblas.h>

#include "base/types.h"

namespace redco::kernels {

// Tells OpenBLAS, once in the process, to use one thread, leaving the caller's OpenMP thread count alone.
// Called by all who use cblas, before.
void single_threaded_blas();

inline void cblas_gemm(bool ta, bool tb, i64 m, i64 n, i64 k, float alpha, const float* a, i64 lda,
                       const float* b, i64 ldb, float beta, float* c, i64 ldc) {
  cblas_sgemm(CblasRowMajor, ta ? CblasTrans : CblasNoTrans, tb ? CblasTrans : CblasNoTrans,
              static_cast<blasint>(m), static_cast<blasint>(n), static_cast<blasint>(k), alpha, a,
              static_cast<blasint>(lda), b, static_cast<blasint>(ldb), beta, c, static_cast<blasint>(ldc));
}
inline void cblas_gemm(bool ta, bool tb, i64 m, i64 n, i64 k, double alpha, const double* a, i64 lda,
                       const double* b, i64 ldb, double beta, double* c, i64 ldc) {
  cblas_dgemm(CblasRowMajor, ta ? CblasTrans : CblasNoTrans, tb ? CblasTrans : CblasNoTrans,
              static_cast<blasint>(m), static_cast<blasint>(n), static_cast<blasint>(k), alpha, a,
              static_cast<blasint>(lda), b, static_cast<blasint>(ldb), beta, c, static_cast<blasint>(ldc));
}

}  // namespace redco::kernels
