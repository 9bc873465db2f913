// cblas by element type. OpenBLAS runs every product on one thread; the threads of the pool call it on tiles.
#pragma once

#include <cblas.h>
#include <omp.h>

#include "base/types.h"

namespace redco::kernels {

// Outside of a parallel region OpenBLAS uses as many threads as OpenMP allows, whatever its own number is,
// and then it sums in another order.
class OneThread {
 public:
  OneThread() : before_(omp_in_parallel() ? 1 : omp_get_max_threads()) {
    if (before_ > 1) omp_set_num_threads(1);
  }
  ~OneThread() {
    if (before_ > 1) omp_set_num_threads(before_);
  }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  int before_;
};

inline void cblas_gemm(bool ta, bool tb, i64 m, i64 n, i64 k, float alpha, const float* a, i64 lda,
                       const float* b, i64 ldb, float beta, float* c, i64 ldc) {
  const OneThread alone;
  cblas_sgemm(CblasRowMajor, ta ? CblasTrans : CblasNoTrans, tb ? CblasTrans : CblasNoTrans,
              static_cast<blasint>(m), static_cast<blasint>(n), static_cast<blasint>(k), alpha, a,
              static_cast<blasint>(lda), b, static_cast<blasint>(ldb), beta, c, static_cast<blasint>(ldc));
}
inline void cblas_gemm(bool ta, bool tb, i64 m, i64 n, i64 k, double alpha, const double* a, i64 lda,
                       const double* b, i64 ldb, double beta, double* c, i64 ldc) {
  const OneThread alone;
  cblas_dgemm(CblasRowMajor, ta ? CblasTrans : CblasNoTrans, tb ? CblasTrans : CblasNoTrans,
              static_cast<blasint>(m), static_cast<blasint>(n), static_cast<blasint>(k), alpha, a,
              static_cast<blasint>(lda), b, static_cast<blasint>(ldb), beta, c, static_cast<blasint>(ldc));
}

}  // namespace redco::kernels
