// One run at a time in a workdir: two would overwrite each other's checkpoints and logs.
#pragma once

#include <string>

namespace redco {

// Holds workdir/.lock while it lives; the system lets go of it when the process ends, however it ends. Held
// by the job's first rank.
class WorkdirLock {
 public:
  // UsageError naming the process and host that hold it; IoError if the file can't be made. On file systems
  // without locks: a warning.
  explicit WorkdirLock(const std::string& workdir);
  ~WorkdirLock();
  WorkdirLock(const WorkdirLock&) = delete;
  WorkdirLock& operator=(const WorkdirLock&) = delete;

 private:
  int fd_ = -1;
};

// Who holds the lock of a workdir now, "process 17 on node1"; "" where nobody does, or it can't be told.
std::string workdir_holder(const std::string& workdir);

}  // namespace redco
