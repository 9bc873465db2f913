// The instructions of a kind of CPU that no compiler finds in plain code. Only for the files of this folder;
// everything else there is plain C++ with the compiler's vector types.
//
// Both headers define for their CPUs, with W = kBytes / 4:
//   kBytes, kRegisters              bytes of a vector, number of vector registers
//   REDCO_KEEP(x)                   keeps the vector x in a register: it is loaded once, not for each use
//   floats_of(const bf16*)          W bf16 numbers as floats
//   floats_of(const std::int8_t*)   W signed bytes as floats
//   floats_of_nibbles(p, upper)     the lower or the upper 4 bits of W bytes as floats
//   words_of(const std::int8_t*)    2 W signed bytes as 16-bit integers
//   add_neighbours(a, b)            of products of 16-bit integers: lane i is a[2i] b[2i] + a[2i+1] b[2i+1]
//   add_byte_neighbours(a, b)       the same of bytes: a is in [0, 127], b has signs
//   every_fourth(p, stride)         16 bytes at p, p + stride, ...: as many as a vector holds
//   scale_of(bits)                  one fp16 number
//   scale_pair(p, first, second)    two neighbours of fp16
//   scale_pairs(p, stride)          the neighbours of fp16 at p, p + stride, ..., W times
//   scales_times(p, stride, by, to) to[j] = by * the fp16 number at p + j * stride, for each j
//   Lanes                           64-bit lanes for Philox: lanes(), iota(), add(), exclusive_or(), high()
//                                   (the upper halves), multiply_low() (the lower halves, into 64 bits),
//                                   store_low()
// REDCO_BYTE_PRODUCTS: also add_byte_products(sums, a, b), which adds products of four bytes to 32-bit sums;
// a CPU has it from Isa::avx512_bf16 on.
#pragma once

#if defined(__x86_64__)
#include "kernels/cpu/x86/registers.h"
#elif defined(__aarch64__)
#include "kernels/cpu/neon/registers.h"
#else
#error "redco has kernels for x86-64 and arm64"
#endif
