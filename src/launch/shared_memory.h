// Removes the files that Open MPI leaves behind when its processes are killed.
#pragma once

#include <string>

namespace redco {

// Removes files /dev/shm/vader_segment.HOST.UID.* that no process of this user has mapped, and folders
// ompi.HOST.UID/pid.PID in /tmp and $TMPDIR whose process has ended. Both only if they belong to this user
// and this host and are unchanged for 60 s, so that a starting job keeps its files. Returns the number of
// removed files and folders; a file that cannot be removed is not an error. root: "", or a folder with such
// files in tests.
int clean_shared_memory(const std::string& host, const std::string& root = "");

}  // namespace redco
