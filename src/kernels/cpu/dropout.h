// Shared by dropout and attention.
#pragma once

#include "base/types.h"

namespace redco::kernels {

// An element is dropped if and only if its (Philox word >> 8) is below this threshold: uniform < rate.
u32 drop_threshold(double rate);

}  // namespace redco::kernels
