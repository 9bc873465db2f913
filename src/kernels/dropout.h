// What dropout and attention share.
#pragma once

#include "base/types.h"

namespace redco::kernels {

// An element is dropped iff its Philox word >> 8 is below this: uniform < rate.
u32 drop_threshold(double rate);

}  // namespace redco::kernels
