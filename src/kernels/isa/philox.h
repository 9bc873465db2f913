// Philox4x32-10 (Salmon et al. 2011), word 0 and 1 of one counter, written so that a loop over c3 vectorizes.
#pragma once

#include "kernels/isa/math.h"

namespace redco::kernels::REDCO_ISA {

struct TwoWords {
  u32 first, second;
};
REDCO_INLINE TwoWords philox_(u64 key, u32 x0, u32 x1, u32 x2, u32 x3) {
  u32 k0 = static_cast<u32>(key), k1 = static_cast<u32>(key >> 32);
#pragma GCC unroll 10
  for (int round = 0; round < 10; ++round) {
    const u64 p0 = static_cast<u64>(0xD2511F53u) * x0, p1 = static_cast<u64>(0xCD9E8D57u) * x2;
    x0 = static_cast<u32>(p1 >> 32) ^ x1 ^ k0;
    x1 = static_cast<u32>(p1);
    x2 = static_cast<u32>(p0 >> 32) ^ x3 ^ k1;
    x3 = static_cast<u32>(p0);
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return {x0, x1};
}

}  // namespace redco::kernels::REDCO_ISA
