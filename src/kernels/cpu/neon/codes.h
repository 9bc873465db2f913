// Codes of quantized blocks with the compiler's vectors and those of registers.h (isa/codes.h has the
// contract).
#pragma once

#include "kernels/cpu/isa/codes.h"

namespace redco::kernels::REDCO_ISA {

REDCO_INLINE void nibbles_of(const std::uint8_t* p, Codes& to) {
  typedef std::uint8_t Bytes __attribute__((vector_size(16)));
  Bytes x;
  __builtin_memcpy(&x, p, sizeof x);
  const Bytes halves[2] = {x & 15, x >> 4};
  __builtin_memcpy(&to, halves, sizeof to);
}
REDCO_INLINE void fifth_of(const std::uint8_t* p, Codes& to) {
  for (int i = 0; i < 32; ++i) to[i] = static_cast<std::uint8_t>((p[i / 8] >> i % 8 & 1) << 4);
}

REDCO_INLINE void floats_of(const Codes& codes, Floats (&to)[kFloatsOfCodes]) {
  std::int8_t bytes[32];
  __builtin_memcpy(bytes, &codes, sizeof bytes);
#pragma GCC unroll 8
  for (int v = 0; v < kFloatsOfCodes; ++v) to[v] = floats_of(bytes + v * (kBytes / 4));
}
REDCO_INLINE void words_of(const Codes& codes, Words (&to)[kWordsOfCodes]) {
  std::int8_t bytes[32];
  __builtin_memcpy(bytes, &codes, sizeof bytes);
#pragma GCC unroll 4
  for (int v = 0; v < kWordsOfCodes; ++v) to[v] = words_of(bytes + v * (kBytes / 2));
}
REDCO_INLINE void times_halves(Words (&w)[kWordsOfCodes], std::int16_t first, std::int16_t second) {
#pragma GCC unroll 4
  for (int v = 0; v < kWordsOfCodes; ++v) {
    const std::int16_t half = v < kWordsOfCodes / 2 ? first : second;
    w[v] *= Words{} + half;
  }
}

}  // namespace redco::kernels::REDCO_ISA
