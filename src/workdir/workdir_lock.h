// Allows one run at a time in a workdir: two runs would overwrite each other's checkpoints and logs.
#pragma once

#include <string>

#include "base/lease.h"

namespace redco {

// Holds workdir/.lock (FileLock) during its lifetime. The job's first rank holds it.
class WorkdirLock {
 public:
  // UsageError with the process and host that hold it; IoError if the file cannot be created.
  explicit WorkdirLock(const std::string& workdir);

 private:
  FileLock lock_;
};

// The holder of a workdir's lock, "process 17 on node1"; "" if nobody holds it or the holder is unknown.
std::string workdir_holder(const std::string& workdir);

}  // namespace redco
