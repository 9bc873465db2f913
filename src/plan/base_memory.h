// What a rank holds beside its tensors: the program and its libraries, OpenBLAS' and MPI's tables, the
// collated ids.
#pragma once

#include "base/types.h"

namespace redco {

// Measured as VmHWM of `redco train` less the arena's high-water mark, 2 cores, Open MPI 4.1, models of 124M
// to 223M parameters: alone 46 MiB; of several ranks 28 to 31 MiB, but 60 to 63 MiB on the first, which makes
// the token index and writes most of a checkpoint.
constexpr i64 kBaseAlone = i64{46} << 20;
constexpr i64 kBaseUnderMpi = i64{48} << 20;

constexpr i64 base_memory(i64 n_ranks) { return n_ranks > 1 ? kBaseUnderMpi : kBaseAlone; }

}  // namespace redco
