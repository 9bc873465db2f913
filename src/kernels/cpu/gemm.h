// Matrix products. Row-major; T is float or double.
#pragma once

#include <span>

#include "base/types.h"

namespace redco::kernels {

// c[m,n] = alpha * op(a) op(b) + beta * c with op(a)[m,k], op(b)[k,n]; lda, ldb, ldc are row strides of the
// stored matrices. Any of m, n, k may be 0 (k == 0: c = beta * c). If beta == 0, c is not read.
template <class T>
void gemm(bool trans_a, bool trans_b, i64 m, i64 n, i64 k, T alpha, const T* a, i64 lda, const T* b, i64 ldb,
          T beta, T* c, i64 ldc);

// batch` independent products; *_stride is the distance between consecutive matrices (0: shared).
template <class T>
void gemm_batch(i64 batch, bool trans_a, bool trans_b, i64 m, i64 n, i64 k, T alpha, const T* a, i64 lda,
                i64 a_stride, const T* b, i64 ldb, i64 b_stride, T beta, T* c, i64 ldc, i64 c_stride);

// y[m,n] = x[m,k] w[n,k]^T with a matrix w of a storage type: bf16, Group8 or Group4 (groups.h), whose rows
// are whole groups. Few rows widen w in registers; otherwise a tile of w at a time is widened into the
// workspace: stored_gemm_workspace() elements, uninitialized.
template <class S>
void stored_gemm(i64 m, i64 n, i64 k, const float* x, const S* w, float* y, std::span<float> workspace);
i64 stored_gemm_workspace(i64 m, i64 n, i64 k);

}  // namespace redco::kernels
