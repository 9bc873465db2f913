// One run at a time per workdir: two runs would overwrite each other's checkpoints and logs.
#pragma once

#include <string>

#include "base/lease.h"

namespace redco {

// Holds workdir/.lock while it lives (FileLock). Held by the job's first rank.
class WorkdirLock {
 public:
  // UsageError naming the process and host that hold it; IoError if the file can't be made.
  explicit WorkdirLock(const std::string& workdir);

 private:
  FileLock lock_;
};

// The process that holds the lock of a workdir now, "process 17 on node1"; "" if there is none, or it is
// unknown.
std::string workdir_holder(const std::string& workdir);

}  // namespace redco
