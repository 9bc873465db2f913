// fp32 to and from the 16-bit formats, in integer arithmetic that vectorizes; rounds to nearest, ties to
// even.
#include "kernels/cpu/isa/math.h"
#include "kernels/cpu/isa/ranges.h"

namespace redco::kernels::REDCO_ISA {
namespace {

// A NaN keeps its sign and upper bits and becomes quiet; rounding could carry its mantissa into inf.
REDCO_INLINE u32 bf16_bits(u32 u) {
  const u32 rounded = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
  const u32 nan = (u >> 16) | 0x40u;
  return (u & 0x7fffffffu) > 0x7f800000u ? nan : rounded;
}

REDCO_INLINE u32 fp16_bits(u32 u) {
  const u32 sign = (u >> 16) & 0x8000u, a = u & 0x7fffffffu;
  // Normal results: rebias the exponent by 112 and round 13 bits. A carry into the exponent, up to inf, is
  // correct.
  const u32 normal = (a - (112u << 23) + 0xfffu + ((a >> 13) & 1u)) >> 13;
  // Subnormal results (below 2^-14): adding 0.5 aligns the last bit with 2^-24, and the addition rounds.
  const u32 tiny = to_bits(from_bits(a) + 0.5f) - 0x3f000000u;
  u32 r = a < 0x38800000u ? tiny : normal;
  r = a >= 0x47800000u ? 0x7c00u : r;                          // 65536 and above
  r = a > 0x7f800000u ? (0x7e00u | ((a >> 13) & 0x3ffu)) : r;  // NaN
  return r | sign;
}

REDCO_INLINE float fp16_value(u32 h) {
  const u32 sign = (h & 0x8000u) << 16, a = h & 0x7fffu;
  const u32 normal = (a << 13) + (112u << 23);
  // Subnormals: a * 2^-24, exact.
  const u32 tiny = to_bits(static_cast<float>(static_cast<i32>(a)) * 5.9604644775390625e-08f);
  const u32 special = 0x7f800000u | (a << 13);
  return from_bits(sign | (a < 0x400u ? tiny : a >= 0x7c00u ? special : normal));
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
