#include "kernels/cpu/nn.h"
#include "kernels/cpu/pool.h"

namespace redco::kernels {

// Limited by memory bandwidth on every instruction set.
void sgd(const Sgd& h, float* p, const float* g, float* buffer, i64 n) {
  const auto lr = static_cast<float>(h.lr), momentum = static_cast<float>(h.momentum),
             decay = static_cast<float>(h.weight_decay), scale = static_cast<float>(h.grad_scale);
  for_blocks(n, [&](i64 begin, i64 end) {
    if (buffer) {
#pragma omp simd
      for (i64 i = begin; i < end; ++i) {
        buffer[i] = momentum * buffer[i] + (scale * g[i] + decay * p[i]);
        p[i] -= lr * buffer[i];
      }
    } else {
#pragma omp simd
      for (i64 i = begin; i < end; ++i) p[i] -= lr * (scale * g[i] + decay * p[i]);
    }
  });
}

}  // namespace redco::kernels
