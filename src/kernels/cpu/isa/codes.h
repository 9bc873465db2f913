// The codes of 32 weights of a quantized block, one signed or unsigned byte each, for blocks.cpp. Both
// headers define for their CPUs, with W = kBytes / 4:
//   nibbles_of(p, to)             the lower 4 bits of 16 bytes, then the upper ones
//   fifth_of(p, to)               16 where bit i of 32 bits is set
//   floats_of(codes, to)          32 / W vectors of floats
//   words_of(codes, to)           16 / W vectors of 16-bit integers
//   times_halves(w, first, second) the words of codes 0 to 15 times `first`, the others times `second`
#pragma once

#include "kernels/cpu/isa/registers.h"

namespace redco::kernels::REDCO_ISA {

typedef std::uint8_t Codes __attribute__((vector_size(32)));
constexpr int kFloatsOfCodes = 32 / (kBytes / 4), kWordsOfCodes = 32 / (kBytes / 2);

}  // namespace redco::kernels::REDCO_ISA

#if defined(__x86_64__)
#include "kernels/cpu/x86/codes.h"
#else
#include "kernels/cpu/neon/codes.h"
#endif
