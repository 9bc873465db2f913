#include <cmath>

#include "kernels/cpu/device.h"
#include "kernels/cpu/isa/ranges.h"
#include "kernels/cpu/list_blocks.h"
#include "kernels/cpu/lists.h"
#include "kernels/cpu/views.h"
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

void adamw(const AdamW& h, const Views& p, const Views& g, const Views& m, const Views& v) {
  const AdamWStep step = step_of(h);
  for_list_blocks(p, [&](i64, std::size_t k, i64 i, i64 end) {
    float *const pk = pointer<float>(p[k]), *const mk = pointer<float>(m[k]),
                 *const vk = pointer<float>(v[k]);
    const float* const gk = pointer<float>(g[k]);
    REDCO_ISA_CALL(adamw(step, pk + i, gk + i, mk + i, vk + i, end - i));
  });
}

// Limited by memory bandwidth on every instruction set.
void sgd(const Sgd& h, const Views& p, const Views& g, const Views& buffers) {
  const auto lr = static_cast<float>(h.lr), momentum = static_cast<float>(h.momentum),
             decay = static_cast<float>(h.weight_decay), scale = static_cast<float>(h.grad_scale);
  for_list_blocks(p, [&](i64, std::size_t k, i64 begin, i64 end) {
    float* const pk = pointer<float>(p[k]);
    const float* const gk = pointer<float>(g[k]);
    if (!buffers.empty()) {
      float* const b = pointer<float>(buffers[k]);
#pragma omp simd
      for (i64 i = begin; i < end; ++i) {
        b[i] = momentum * b[i] + (scale * gk[i] + decay * pk[i]);
        pk[i] -= lr * b[i];
      }
    } else {
#pragma omp simd
      for (i64 i = begin; i < end; ++i) pk[i] -= lr * (scale * gk[i] + decay * pk[i]);
    }
  });
}

void average(double rate, const Views& x, const Views& y) {
  const auto keep = static_cast<float>(1 - rate), add = static_cast<float>(rate);
  for_list_blocks(y, [&](i64, std::size_t k, i64 i, i64 end) {
    const float* const from = pointer<float>(x[k]);
    float* const to = pointer<float>(y[k]);
    REDCO_ISA_CALL(affine(to + i, to + i, keep, 0.0f, end - i));
    REDCO_ISA_CALL(axpy(add, from + i, to + i, end - i));
  });
}

void round_weights(const Views& x, const Views& y) {
  static_assert(sizeof(bf16) == sizeof(std::uint16_t));
  for_list_blocks(x, [&](i64, std::size_t k, i64 i, i64 end) {
    const float* const from = pointer<float>(x[k]);
    auto* const to = pointer<std::uint16_t>(y[k]);
    REDCO_ISA_CALL(to_bf16(from + i, to + i, end - i));
  });
}

void add_optimizers(Kernels& t) {
  t.adamw.run = adamw;
  t.sgd.run = sgd;
  t.average.run = [](const double& rate, const Views& x, const Views& y) { average(rate, x, y); };
  t.round_weights.run = round_weights;
}

}  // namespace redco::kernels
