// The dims that two strided arrays of one shape have together.
#pragma once

#include <span>

#include "base/types.h"

namespace redco::kernels {

struct MergedDim {
  i64 size, a, b;  // a, b: the strides
};

// Without dims of size 1; adjacent dims that both arrays traverse as one are merged.
inline SmallVector<MergedDim, 8> merged_dims(std::span<const i64> shape, std::span<const i64> a,
                                             std::span<const i64> b) {
  SmallVector<MergedDim, 8> dims;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] == 1) continue;
    const MergedDim now{shape[d], a[d], b[d]};
    if (!dims.empty() && dims.back().a == now.a * now.size && dims.back().b == now.b * now.size)
      dims.back() = {dims.back().size * now.size, now.a, now.b};
    else
      dims.push_back(now);
  }
  return dims;
}

}  // namespace redco::kernels
