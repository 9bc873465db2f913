// What a rank holds beside its tensors: the program and its libraries, OpenBLAS' and MPI's tables, the
// collated ids.
#pragma once

#include "base/types.h"

namespace redco {

// Measured: VmHWM of `redco train` less its arena's high-water mark (docs/plan.md says how).
constexpr i64 kBaseAlone = i64{70} << 20;
constexpr i64 kBaseUnderMpi = i64{90} << 20;

constexpr i64 base_memory(i64 n_ranks) { return n_ranks > 1 ? kBaseUnderMpi : kBaseAlone; }

}  // namespace redco
