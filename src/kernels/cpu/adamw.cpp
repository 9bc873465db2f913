#include <cmath>

#include "kernels/cpu/isa/ranges.h"
#include "kernels/cpu/nn.h"
#include "kernels/cpu/pool.h"
#include "kernels/isa.h"

namespace redco::kernels {
namespace {

// The scalars are computed in fp64 and rounded once, as in PyTorch.
AdamWStep step_of(const AdamW& h) {
  auto f = [](double x) { return static_cast<float>(x); };
  return {f(1 - h.lr * h.weight_decay), f(1 - h.beta1), f(h.beta2),        f(1 - h.beta2),
          f(std::sqrt(h.bias2)),        f(h.eps),       f(h.lr / h.bias1), f(h.grad_scale)};
}

}  // namespace

void adamw(const AdamW& h, float* p, const float* g, float* m, float* v, i64 n) {
  const AdamWStep step = step_of(h);
  for_blocks(n, [&](i64 i, i64 end) { REDCO_ISA_CALL(adamw(step, p + i, g + i, m + i, v + i, end - i)); });
}

}  // namespace redco::kernels
