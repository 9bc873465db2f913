#include "base/process.h"

#include <cstdlib>
#include <fstream>
#include <string>

namespace redco {

i64 peak_memory_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.rfind("VmHWM:", 0) == 0) return std::atoll(line.c_str() + 6) * 1024;
  return 0;
}

}  // namespace redco
