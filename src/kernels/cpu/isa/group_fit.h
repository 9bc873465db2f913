// What the groups of 8 and 4 bits have in common when weights are rounded to them.
#pragma once

#include "kernels/cpu/groups.h"
#include "kernels/cpu/isa/math.h"

namespace redco::kernels::REDCO_ISA {

constexpr u32 kNan16 = 0x7e00u;

REDCO_INLINE bool all_finite(const float* x) {
  float rest = 0;
  for (i64 i = 0; i < kGroup; ++i) rest += x[i] - x[i];
  return rest == 0;
}

// The nearest integer to x / scale in [low, high]; 0 if the scale is 0 or NaN.
REDCO_INLINE i32 nearest(float x, float scale, float low, float high) {
  float q = __builtin_floorf(x / scale + 0.5f);
  q = q < low ? low : q > high ? high : q;
  return static_cast<i32>(scale < 0 || scale > 0 ? q : 0);
}

}  // namespace redco::kernels::REDCO_ISA
