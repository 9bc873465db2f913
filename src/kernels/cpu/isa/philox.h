// Philox4x32-10 (Salmon et al. 2011): words 0 and 1 of the counters (c0, c1, c2, c3 + i), as vectors of
// 64-bit lanes. The lower half of a lane is the word, because one instruction multiplies lower halves into 64
// bits.
#pragma once

#include "kernels/cpu/isa/registers.h"

namespace redco::kernels::REDCO_ISA {

// The words of [i, i + 2 * kCount), two vectors together to hide the latency of the multiplication.
template <bool kSecond>
REDCO_INLINE void philox_step(u64 key, u32 c0, u32 c1, u32 c2, u32 c3, u32* first, u32* second) {
  constexpr int kVectors = 2;
  u32 k0 = static_cast<u32>(key), k1 = static_cast<u32>(key >> 32);
  const Lanes m0 = lanes(0xD2511F53u), m1 = lanes(0xCD9E8D57u);
  Lanes x0[kVectors], x1[kVectors], x2[kVectors], x3[kVectors];
  for (int j = 0; j < kVectors; ++j) {
    x0[j] = lanes(c0);
    x1[j] = lanes(c1);
    x2[j] = lanes(c2);
    // Above 2^32 the lower half wraps around like the counter; the upper half is never read.
    x3[j] = add(lanes(static_cast<u64>(c3) + static_cast<u64>(j * Lanes::kCount)), iota());
  }
#pragma GCC unroll 10
  for (int round = 0; round < 10; ++round) {
    const Lanes key0 = lanes(k0), key1 = lanes(k1);
    for (int j = 0; j < kVectors; ++j) {
      const Lanes p0 = multiply_low(m0, x0[j]), p1 = multiply_low(m1, x2[j]);
      x0[j] = exclusive_or(high(p1), x1[j], key0);
      x1[j] = p1;
      x2[j] = exclusive_or(high(p0), x3[j], key1);
      x3[j] = p0;
    }
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  for (int j = 0; j < kVectors; ++j) {
    store_low(first + j * Lanes::kCount, x0[j]);
    if constexpr (kSecond) store_low(second + j * Lanes::kCount, x1[j]);
  }
}

// first[i] (and second[i]) for i in [0, n).
template <bool kSecond>
static inline void philox_fill(u64 key, u32 c0, u32 c1, u32 c2, u32 c3, u32* first, u32* second, i64 n) {
  constexpr i64 kStep = 2 * Lanes::kCount;
  i64 i = 0;
  for (; i + kStep <= n; i += kStep)
    philox_step<kSecond>(key, c0, c1, c2, c3 + static_cast<u32>(i), first + i,
                         kSecond ? second + i : nullptr);
  if (i == n) return;
  u32 a[kStep], b[kStep];
  philox_step<kSecond>(key, c0, c1, c2, c3 + static_cast<u32>(i), a, b);
  for (i64 j = 0; i + j < n; ++j) {
    first[i + j] = a[j];
    if constexpr (kSecond) second[i + j] = b[j];
  }
}

}  // namespace redco::kernels::REDCO_ISA
