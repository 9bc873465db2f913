// Memory of a rank besides its tensors: the program and its libraries, tables of OpenBLAS and MPI, the
// collated ids.
#pragma once

#include "base/types.h"

namespace redco {

// Measured as VmHWM of `redco train` minus the arena's high-water mark, on 2 cores with Open MPI 4.1, for
// models of 124M to 223M parameters: 46 MiB for a single rank; with several ranks 28 to 31 MiB, but 60 to 63
// MiB on the first rank, which builds the token index and writes most of a checkpoint.
constexpr i64 kBaseAlone = i64{46} << 20;
constexpr i64 kBaseUnderMpi = i64{48} << 20;

constexpr i64 base_memory(i64 n_ranks) { return n_ranks > 1 ? kBaseUnderMpi : kBaseAlone; }

}  // namespace redco
