// What Open MPI leaves behind when its processes are killed.
#pragma once

#include <string>

namespace redco {

// Removes what no living process of this user needs any more: files /dev/shm/vader_segment.HOST.UID.* that no
// process of this user has mapped, and folders TMP/ompi.HOST.UID/pid.PID whose process has ended. Both only
// if they belong to this user and this host, and nothing has changed them for 60 s, so that a job that is
// just starting keeps its own. TMP: /tmp. Returns how many it removed; what cannot be removed stays, which is
// no error. root: "" in earnest, a folder with such files in tests.
int clean_shared_memory(const std::string& host, const std::string& root = "");

}  // namespace redco
