#include "workdir/workdir_lock.h"

#include "base/error.h"
#include "base/file.h"
#include "workdir/workdir_names.h"

namespace redco {

namespace {
std::string lock_path(const std::string& workdir) { return join_path(workdir, workdir::kLock); }
}  // namespace

WorkdirLock::WorkdirLock(const std::string& workdir)
    : lock_(lock_path(workdir), "[train] workdir " + workdir,
            "wait until that run has ended, or use another workdir", FileLock::keeps) {}

std::string workdir_holder(const std::string& workdir) { return lock_holder(lock_path(workdir)); }

}  // namespace redco
