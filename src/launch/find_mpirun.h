// Finds the mpirun of the MPI library that this program is linked with.
#pragma once

#include <string>

namespace redco {

// library: the file of the linked Open MPI, "" if unknown; version: "Open MPI v4.1.4"; path: $PATH. Looks in
// bin/ next to the library's folder and its parents, then in path, and compares the versions. Returns the
// first mpirun of the same version: by its bare name if path leads to it, else absolute. (With an absolute
// name Open MPI puts its folders first in PATH and LD_LIBRARY_PATH of all ranks, which other hosts need if
// they cannot find it themselves.) UsageError: there is no mpirun, or all have other versions.
std::string find_mpirun(const std::string& library, const std::string& version, const std::string& path);

}  // namespace redco
