// The MPI library that this program uses.
#pragma once

#include <string>

namespace redco {

struct MpiLibrary {
  std::string path;     // path of its file; "" if the dynamic linker does not report it
  std::string version;  // mpi_version(): "Open MPI v4.1.4"
};
// Does not initialize MPI.
MpiLibrary mpi_library();

}  // namespace redco
