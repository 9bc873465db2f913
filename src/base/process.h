// Memory and CPUs of this process, and the name of its host.
#pragma once

#include <string>

#include "base/types.h"

namespace redco {

// Peak resident memory so far (VmHWM) in bytes; 0 if /proc does not report it.
i64 peak_memory_bytes();

// Number of CPUs in this process's affinity mask, at least 1.
int usable_cpus();

// The host's name; "" if the system does not report it.
std::string host_name();

}  // namespace redco
