// fp32 to and from the 16-bit formats, in integer arithmetic that vectorizes; rounds to nearest, ties to
// even.
#include "kernels/cpu/isa/fp16.h"
#include "kernels/cpu/isa/math.h"
#include "kernels/cpu/isa/ranges.h"

namespace redco::kernels::REDCO_ISA {
void to_bf16(const float* x, u16* y, i64 n) {
#pragma omp simd
  for (i64 i = 0; i < n; ++i) y[i] = static_cast<u16>(bf16_bits(to_bits(x[i])));
}

void from_bf16(const u16* x, float* y, i64 n) {
#pragma omp simd
  for (i64 i = 0; i < n; ++i) y[i] = from_bits(static_cast<u32>(x[i]) << 16);
}

void to_fp16(const float* x, u16* y, i64 n) {
#pragma omp simd
  for (i64 i = 0; i < n; ++i) y[i] = static_cast<u16>(fp16_bits(to_bits(x[i])));
}

void from_fp16(const u16* x, float* y, i64 n) {
#pragma omp simd
  for (i64 i = 0; i < n; ++i) y[i] = fp16_value(x[i]);
}

}  // namespace redco::kernels::REDCO_ISA
