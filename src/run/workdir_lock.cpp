#include "run/workdir_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/words.h"

namespace redco {

namespace {

std::string lock_path(const std::string& workdir) { return join_path(workdir, ".lock"); }

// What the holder wrote into the lock file.
std::string holder_of(int fd) {
  std::array<char, 200> text{};
  const ssize_t n = ::pread(fd, text.data(), text.size(), 0);
  std::string who = n > 0 ? excerpt({text.data(), static_cast<std::size_t>(n)}, 120) : "";
  while (!who.empty() && who.back() == ' ') who.pop_back();
  return who;
}

}  // namespace

WorkdirLock::WorkdirLock(const std::string& workdir) {
  const std::string path = lock_path(workdir);
  fd_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (fd_ < 0)
    throw IoError("[train] workdir {} can't be written: {}: {}", workdir, path, std::strerror(errno));
  // Tried again for a moment: workdir_holder() may be looking.
  for (int tries = 0; ::flock(fd_, LOCK_EX | LOCK_NB) != 0;) {
    if (errno == EINTR) continue;
    const int why = errno;
    if (why == EWOULDBLOCK && ++tries < 5) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      continue;
    }
    const std::string who = holder_of(fd_);
    ::close(fd_);
    fd_ = -1;
    if (why != EWOULDBLOCK) {
      warn("[train] {} can't be locked ({}): nothing keeps a second run out of this workdir", path,
           std::strerror(why));
      return;
    }
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

std::string workdir_holder(const std::string& workdir) {
  const int fd = ::open(lock_path(workdir).c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return "";
  std::string who;
  if (::flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    who = holder_of(fd);
    if (who.empty()) who = "another process";
  }
  ::close(fd);
  return who;
}

}  // namespace redco
