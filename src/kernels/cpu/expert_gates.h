// Parts of the experts of gpt-oss: biases of the inner layers, and their combination with limits.
#pragma once

#include <algorithm>
#include <cmath>

#include "kernels/cpu/pool.h"

namespace redco::kernels {

// y[m, n] += b[n] in each row.
template <class T>
void add_to_rows(const T* b, i64 m, i64 n, T* y) {
  for_rows(m, n, [&](i64 i, i64 end) {
    for (; i < end; ++i) {
      T* const row = y + i * n;
#pragma omp simd
      for (i64 c = 0; c < n; ++c) row[c] += b[c];
    }
  });
}

// y[n] = keep y + the sum of the rows of x[m, n], row by row.
template <class T>
void sum_rows(const T* x, i64 m, i64 n, T keep, T* y) {
  for_blocks(n, [&](i64 begin, i64 end) {
    for (i64 c = begin; c < end; ++c) {
      double total = 0;
      for (i64 r = 0; r < m; ++r) total += static_cast<double>(x[r * n + c]);
      y[c] = (keep == T(0) ? T(0) : y[c]) + static_cast<T>(total);
    }
  });
}

// g sigmoid(alpha g) (u + 1) with limited g and u: see MixtureOfExperts. NaN stays NaN.
template <class T>
void clamped_swiglu(double limit, double alpha, const T* gate, const T* up, i64 n, T* y) {
  const T most = static_cast<T>(limit), by = static_cast<T>(alpha);
  for_blocks(n, [&](i64 i, i64 end) {
    for (; i < end; ++i) {
      const T g = std::min(gate[i], most), u = std::max(std::min(up[i], most), -most);
      y[i] = g / (T(1) + std::exp(-by * g)) * (u + T(1));
    }
  });
}

// d: the gradient of the result, replaced by that of gate. dup: the gradient of up. Both are 0 beyond the
// limits.
template <class T>
void clamped_swiglu_backward(double limit, double alpha, const T* gate, const T* up, i64 n, T* d, T* dup) {
  const T most = static_cast<T>(limit), by = static_cast<T>(alpha);
  for_blocks(n, [&](i64 i, i64 end) {
    for (; i < end; ++i) {
      const T g = std::min(gate[i], most), u = std::max(std::min(up[i], most), -most);
      const T s = T(1) / (T(1) + std::exp(-by * g));
      dup[i] = up[i] > most || up[i] < -most ? T(0) : d[i] * g * s;
      d[i] = gate[i] > most ? T(0) : d[i] * (u + T(1)) * s * (T(1) + by * g * (T(1) - s));
    }
  });
}

}  // namespace redco::kernels
