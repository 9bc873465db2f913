// Random words and dropout over the last coordinate.
#include "kernels/cpu/isa/philox.h"

#include "kernels/cpu/isa/ranges.h"

namespace redco::kernels::REDCO_ISA {

void philox_words(u64 key, u32 c0, u32 c1, u32 c2, u32 c3, u32* first, u32* second, i64 n) {
  if (second)
    philox_fill<true>(key, c0, c1, c2, c3, first, second, n);
  else
    philox_fill<false>(key, c0, c1, c2, c3, first, nullptr, n);
}

template <class T>
void dropout(const T* x, T* y, u32 drop_below, T keep_scale, u64 key, u32 c0, u32 c1, u32 c2, u32 c3, i64 n) {
  constexpr i64 kRun = 256;
  u32 words[kRun];
  for (i64 at = 0; at < n; at += kRun, x += kRun, y += kRun) {
    const i64 run = n - at < kRun ? n - at : kRun;
    philox_fill<false>(key, c0, c1, c2, c3 + static_cast<u32>(at), words, nullptr, run);
#pragma omp simd
    for (i64 i = 0; i < run; ++i) y[i] = (words[i] >> 8) >= drop_below ? x[i] * keep_scale : T(0);
  }
}

template void dropout(const float*, float*, u32, float, u64, u32, u32, u32, u32, i64);
template void dropout(const double*, double*, u32, double, u64, u32, u32, u32, u32, i64);

void adamw(const AdamWStep& h, float* p, const float* g, float* m, float* v, i64 n) {
  const AdamWStep s = h;
#pragma omp simd
  for (i64 i = 0; i < n; ++i) {
    const float d = g[i] * s.grad_scale;
    const float m1 = m[i] + (d - m[i]) * s.beta1_rest;
    const float v1 = v[i] * s.beta2 + s.beta2_rest * d * d;
    const float denom = __builtin_sqrtf(v1) / s.sqrt_bias2 + s.eps;
    m[i] = m1;
    v[i] = v1;
    p[i] = p[i] * s.decay - s.step_size * m1 / denom;
  }
}

}  // namespace redco::kernels::REDCO_ISA
