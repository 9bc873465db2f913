// The values that a storage type keeps of a parameter.
#pragma once

#include "ops/redistribute.h"

namespace redco::testing {

// In fp32, with t's placement. Rounded as a whole, so the values do not depend on the mesh.
inline Tensor kept_values(const Tensor& t, DType type) {
  const Tensor whole = to_replicated(t.detached()), stored(t.shape(), type, {});
  Context::current().run(&Kernels::cast, whole, stored);
  return redistribute(widened(stored), t.layout());
}

}  // namespace redco::testing
