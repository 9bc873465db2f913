#include <cmath>

#include "kernels/isa.h"
#include "kernels/isa/ranges.h"
#include "kernels/nn.h"
#include "kernels/pool.h"

namespace redco::kernels {
namespace {

// The scalars are made in fp64 and rounded once, as PyTorch's are.
AdamWStep step_of(const AdamW& h) {
  const double lr = h.lr;
  return {static_cast<float>(1 - lr * h.weight_decay),
          static_cast<float>(1 - static_cast<double>(h.beta1)),
          h.beta2,
          static_cast<float>(1 - static_cast<double>(h.beta2)),
          static_cast<float>(std::sqrt(static_cast<double>(h.bias2))),
          h.eps,
          static_cast<float>(lr / h.bias1),
          h.grad_scale};
}

}  // namespace

void adamw(const AdamW& h, float* p, const float* g, float* m, float* v, i64 n) {
  const AdamWStep step = step_of(h);
  for_blocks(n, [&](i64 i, i64 end) { REDCO_ISA_CALL(adamw(step, p + i, g + i, m + i, v + i, end - i)); });
}

}  // namespace redco::kernels
