// SGD with momentum, fp32, in place.
#pragma once

#include "base/types.h"

namespace redco::kernels {

struct Sgd {
  double lr, momentum, weight_decay, grad_scale;
};
// d = grad_scale g + weight_decay p; b = momentum b + d; p -= lr b. buffer b null: no momentum, p -= lr d.
void sgd(const Sgd& h, float* p, const float* g, float* buffer, i64 n);

}  // namespace redco::kernels
