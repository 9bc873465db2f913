// The mpirun that fits the MPI library which this program is linked with.
#pragma once

#include <string>

namespace redco {

// library: the file of the linked Open MPI, "" where unknown; version: "Open MPI v4.1.4"; path: $PATH.
// Looks in bin/ beside the library's folder and above it, then in path, and asks each mpirun for its version.
// Returns the first of the same version: by its bare name where path leads to it, else absolute. (An absolute
// name makes Open MPI put its folders before the PATH and LD_LIBRARY_PATH of all ranks, as it must where
// other hosts do not find it by themselves.) UsageError: there is none, or all are of other versions.
std::string find_mpirun(const std::string& library, const std::string& version, const std::string& path);

}  // namespace redco
