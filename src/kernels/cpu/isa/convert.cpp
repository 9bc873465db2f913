// fp32 to and from the 16-bit formats, in integer arithmetic that vectorizes; rounds to nearest, ties to
// even.
#include "kernels/cpu/isa/fp16.h"
#include "kernels/cpu/isa/ranges.h"

namespace redco::kernels::REDCO_ISA {
namespace {

// A NaN keeps its sign and upper bits and becomes quiet; rounding could carry its mantissa into inf.
REDCO_INLINE u32 bf16_bits(u32 u) {
  const u32 rounded = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
  const u32 nan = (u >> 16) | 0x40u;
  return (u & 0x7fffffffu) > 0x7f800000u ? nan : rounded;
}

}  // namespace

void to_bf16(const float* x, u16* y, i64 n) {
#pragma omp simd
  for (i64 i = 0; i < n; ++i) y[i] = static_cast<u16>(bf16_bits(to_bits(x[i])));
}

void from_bf16(const u16* x, float* y, i64 n) {
#pragma omp simd
  for (i64 i = 0; i < n; ++i) y[i] = from_bits(static_cast<u32>(x[i]) << 16);
}

void round_to_bf16(const float* x, float* y, i64 n) {
#pragma omp simd
  for (i64 i = 0; i < n; ++i) y[i] = from_bits(bf16_bits(to_bits(x[i])) << 16);
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
