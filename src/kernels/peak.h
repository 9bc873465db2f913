// Peak speeds of this machine's processor, measured.
#pragma once

#include <algorithm>

#include "base/types.h"

namespace redco::kernels {

// Peak matmul speed: the highest sgemm speed of this machine and thread count at the given shape in `reps`
// tries, FLOP/s.
double measure_gemm_ceiling(i64 m, i64 n, i64 k, int reps = 5);
// The same for products of bf16, by own kernels (kernels/cpu/products/bf16_tiles.h) on operands that are
// packed and lie in the cache; 0 if this processor has no instructions for them, and bf16 is widened.
double measure_bf16_ceiling(int reps = 5);
// The highest speed of reading `bytes` of memory in order, bytes/s. A decoding step reads all weights, so it
// can't be faster.
double measure_read_ceiling(i64 bytes, int reps = 5);
// `speed` as a share of a measured peak, at most 1: a step may be faster than the measurement.
inline double peak_share(double speed, double peak) { return speed / std::max(speed, peak); }

}  // namespace redco::kernels
