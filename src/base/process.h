// What this process has used and may use, and where it runs.
#pragma once

#include <string>

#include "base/types.h"

namespace redco {

// Peak resident memory so far (VmHWM), bytes; 0 where /proc doesn't tell.
i64 peak_memory_bytes();

// CPUs that this process may run on (its affinity), at least 1.
int usable_cpus();

// Threads for work on text: usable_cpus(), or OMP_NUM_THREADS if that is smaller; at least 1.
int worker_threads();

// The host's name; "" where the system does not tell.
std::string host_name();

}  // namespace redco
