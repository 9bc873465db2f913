// The MPI library that this program is linked with.
#pragma once

#include <string>

namespace redco {

struct MpiLibrary {
  std::string path;     // its file; "" where the dynamic linker does not tell
  std::string version;  // mpi_version(): "Open MPI v4.1.4"
};
// Does not initialize MPI.
MpiLibrary mpi_library();

}  // namespace redco
