// fp32 to and from fp16, in integer arithmetic that vectorizes; rounds to nearest, ties to even.
#pragma once

#include "kernels/cpu/isa/math.h"

namespace redco::kernels::REDCO_ISA {

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

}  // namespace redco::kernels::REDCO_ISA
