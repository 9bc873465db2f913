// Half-precision numbers in files (IEEE 754 binary16).
#pragma once

#include <bit>
#include <cstdint>

namespace redco {

// The exact value as a float; infinity and NaN stay. Avoids subnormal floats, which are lost if the process
// flushes them to zero.
inline float float_of_half(std::uint16_t h) {
  const std::uint32_t sign = static_cast<std::uint32_t>(h & 0x8000) << 16, rest = h & 0x7fff;
  const std::uint32_t subnormal = std::bit_cast<std::uint32_t>(static_cast<float>(rest) * 0x1p-24f);
  // The exponent's bias becomes 127 instead of 15.
  const std::uint32_t normal = (rest << 13) + (rest < 0x7c00 ? 112u << 23 : 224u << 23);
  return std::bit_cast<float>(sign | (rest < 0x400 ? subnormal : normal));
}

// Rounds to the nearest, ties to even; numbers beyond the range become infinity.
inline std::uint16_t half_of_float(float x) {
  std::uint32_t bits = std::bit_cast<std::uint32_t>(x), sign = bits >> 16 & 0x8000;
  std::uint32_t a = bits & 0x7fffffff;
  std::uint32_t r;
  if (a > 0x7f800000) {
    r = 0x7e00 | (a >> 13 & 0x1ff);  // quiet NaN
  } else if (a >= 0x477ff000) {      // 65520 and more round to infinity
    r = 0x7c00;
  } else if (a <
             0x38800000) {  // below 2^-14: subnormal; adding 1/2 leaves the ulp 2^-24 at the mantissa's end
    r = std::bit_cast<std::uint32_t>(std::bit_cast<float>(a) + 0.5f) - 0x3f000000;
  } else {
    r = (a - 0x38000000 + 0xfff + (a >> 13 & 1)) >> 13;
  }
  return static_cast<std::uint16_t>(sign | r);
}

// The upper half of a float, rounded to the nearest, ties to even. NaN stays NaN.
inline std::uint16_t bf16_of_float(float x) {
  std::uint32_t bits = std::bit_cast<std::uint32_t>(x);
  std::uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
  return static_cast<std::uint16_t>((bits & 0x7fffffff) > 0x7f800000 ? (bits >> 16) | 0x40 : rounded);
}

}  // namespace redco
