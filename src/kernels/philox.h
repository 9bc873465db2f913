// Philox4x32-10 (Salmon et al. 2011) on the host, for draws of single numbers.
#pragma once

#include "base/types.h"

namespace redco::kernels {

// Word 0 for a key and a counter.
u32 philox_word(u64 key, i64 c0, i64 c1, i64 c2, i64 c3);

}  // namespace redco::kernels
