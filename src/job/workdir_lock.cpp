#include "job/workdir_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/words.h"

namespace redco {

WorkdirLock::WorkdirLock(const std::string& workdir) {
  const std::string path = join_path(workdir, ".lock");
  fd_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (fd_ < 0)
    throw IoError("[train] workdir {} can't be written: {}: {}", workdir, path, std::strerror(errno));
  while (::flock(fd_, LOCK_EX | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    const int why = errno;
    std::array<char, 200> holder{};
    const ssize_t n = ::pread(fd_, holder.data(), holder.size(), 0);
    ::close(fd_);
    fd_ = -1;
    if (why != EWOULDBLOCK) {
      warn("[train] {} can't be locked ({}): nothing keeps a second run out of this workdir", path,
           std::strerror(why));
      return;
    }
    std::string who = n > 0 ? excerpt({holder.data(), static_cast<std::size_t>(n)}, 120) : "";
    while (!who.empty() && who.back() == ' ') who.pop_back();
    throw UsageError(
        "[train] workdir {} is in use{}{}; wait until that run has ended, or give this one another workdir",
        workdir, who.empty() ? "" : " by ", who);
  }
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  const std::string me = fmt::format("process {} on {}\n", ::getpid(), host.data());
  if (::ftruncate(fd_, 0) != 0 ||
      ::pwrite(fd_, me.data(), me.size(), 0) < 0) {  // the lock holds without a name in it
  }
}

WorkdirLock::~WorkdirLock() {
  if (fd_ >= 0) ::close(fd_);
}

}  // namespace redco
