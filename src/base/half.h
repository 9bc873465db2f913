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

}  // namespace redco
