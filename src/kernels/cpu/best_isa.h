// What isa.cpp asks of each kind of CPU: src/kernels/cpu/x86 and neon.
#pragma once

#include "kernels/isa.h"

namespace redco::kernels {

// The widest instruction set that this CPU and its system support.
Isa widest_isa();
// The one that is fastest on a CPU whose widest is `best`.
Isa fastest_isa(Isa best);

}  // namespace redco::kernels
