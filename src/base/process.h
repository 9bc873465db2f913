// What this process has used.
#pragma once

#include "base/types.h"

namespace redco {

// Peak resident memory so far (VmHWM), bytes; 0 where /proc doesn't tell.
i64 peak_memory_bytes();

}  // namespace redco
