#include "base/lease.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <optional>
#include <thread>

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/process.h"
#include "base/timing.h"
#include "base/words.h"

namespace redco {

namespace {

constexpr int kTries = 10;

// The contents of the descriptor's file; limited in length, because anybody may have written the file.
std::string text_of(int fd) {
  std::array<char, 400> text{};
  const ssize_t n = ::pread(fd, text.data(), text.size(), 0);
  return n > 0 ? std::string(text.data(), static_cast<std::size_t>(n)) : "";
}

std::string small_file(const char* path) {
  const int fd = ::open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return "";
  std::string text = text_of(fd);
  ::close(fd);
  return text;
}

std::string line_of(const std::string& text, int number) {
  std::size_t at = 0;
  for (; number > 0; --number) {
    at = text.find('\n', at);
    if (at == std::string::npos) return "";
    ++at;
  }
  return text.substr(at, text.find('\n', at) - at);
}

// The first line names this process for people. The second line is equal for all processes of one running
// kernel. The third is the start of its job (kStartOfJob), where a supervisor has started it.
std::string me() {
  const char* start = std::getenv(kStartOfJob);
  return fmt::format("process {} on {}\n{}\n{}\n", ::getpid(), host_name(),
                     line_of(small_file("/proc/sys/kernel/random/boot_id"), 0), start ? start : "");
}
std::string name_in(const std::string& text) {
  const std::string name = excerpt(text.substr(0, text.find('\n')), 120);
  return name.empty() ? "another process" : name;
}
std::string kernel_in(const std::string& text) { return line_of(text, 1); }

// Whether a holder belongs to a former start of this process's job: "KEY 2" before "KEY 3".
bool is_former_start(const std::string& text) {
  const std::string mine = line_of(me(), 2), other = line_of(text, 2);
  const std::size_t space = mine.rfind(' ');
  if (space == std::string::npos || other.substr(0, space + 1) != mine.substr(0, space + 1)) return false;
  return std::atoll(other.c_str() + space) < std::atoll(mine.c_str() + space);
}

void put(int fd, const std::string& text) {
  if (::ftruncate(fd, 0) != 0 || ::pwrite(fd, text.data(), text.size(), 0) < 0)
    debug("[lock] cannot write the holder's name: {}", std::strerror(errno));
}

double seconds_of(const struct timespec& t) {
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

struct Seen {
  std::string text;
  double time = 0;
};
// The current state of a lease. The file is opened because this makes a network file system ask its server.
std::optional<Seen> look(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return std::nullopt;
  struct stat st {};
  const bool known = ::fstat(fd, &st) == 0;
  Seen s{text_of(fd), seconds_of(st.st_mtim)};
  ::close(fd);
  return known ? std::optional(s) : std::nullopt;
}

// The file system's current time; nullopt if no file can be created there.
std::optional<double> time_beside(const std::string& path) {
  static std::atomic<unsigned> count{0};
  const std::string clock =
      join_path(parent_path(path), fmt::format(".clock-{}-{}", ::getpid(), count.fetch_add(1)));
  const int fd = ::open(clock.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) return std::nullopt;
  struct stat st {};
  const bool known = ::fstat(fd, &st) == 0;
  ::close(fd);
  ::unlink(clock.c_str());
  return known ? std::optional(seconds_of(st.st_mtim)) : std::nullopt;
}

bool is_stale(const std::string& path, const Seen& lease) {
  const auto now = time_beside(path);
  return now && *now - lease.time > lease_times().stale;
}

// Creates or opens a lock or a lease. Who may write in its folder may write the file too, whatever umask
// says: a colleague continues the run.
int open_shared(const std::string& path, int flags) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK | flags, 0666);
  struct stat file {
  }, folder{};
  if (fd >= 0 && ::fstat(fd, &file) == 0 && file.st_uid == ::geteuid() &&
      ::stat(parent_path(path).c_str(), &folder) == 0) {
    const mode_t wanted = file.st_mode | (folder.st_mode & (S_IWGRP | S_IWOTH));
    if (wanted != file.st_mode) ::fchmod(fd, wanted & 07777);
  }
  return fd;
}

std::string lease_path(const std::string& lock) { return lock + ".lease"; }

void sleep_seconds(double s) { std::this_thread::sleep_for(std::chrono::duration<double>(s)); }

struct flock whole_file() {
  struct flock l {};
  l.l_type = F_WRLCK;
  l.l_whence = SEEK_SET;
  return l;
}

}  // namespace

LeaseTimes& lease_times() {
  static LeaseTimes times;
  return times;
}

// The thread that renews a file's modification time.
class Lease::Renewal {
 public:
  explicit Renewal(int fd) : fd_(fd) {
    // This thread must not receive signals; other threads wait for them.
    sigset_t all, before;
    sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
    thread_ = std::thread([this] { run(); });
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }
  ~Renewal() {
    {
      const std::lock_guard lock(mutex_);
      ends_ = true;
    }
    wake_.notify_one();
    thread_.join();
    ::close(fd_);
  }
  Renewal(const Renewal&) = delete;
  Renewal& operator=(const Renewal&) = delete;

 private:
  void run() {
    std::unique_lock lock(mutex_);
    while (
        !wake_.wait_for(lock, std::chrono::duration<double>(lease_times().heartbeat), [&] { return ends_; }))
      ::futimens(fd_, nullptr);  // sets the server's time on network file systems
  }
  int fd_;
  bool ends_ = false;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::thread thread_;
};

Lease::Lease(std::string path, int fd) : path_(std::move(path)), renewal_(std::make_unique<Renewal>(fd)) {}

std::unique_ptr<Lease> Lease::hold(const std::string& path) {
  const int fd = open_shared(path, 0);
  if (fd < 0) {
    debug("[lock] cannot create the lease {}: {}", path, std::strerror(errno));
    return nullptr;
  }
  put(fd, me());
  ::futimens(fd, nullptr);
  return std::unique_ptr<Lease>(new Lease(path, fd));
}

Lease::~Lease() {
  renewal_.reset();
  ::unlink(path_.c_str());
}

std::string lease_holder(const std::string& path) {
  const auto lease = look(path);
  return lease && !is_stale(path, *lease) ? name_in(lease->text) : "";
}

FileLock::FileLock(std::string path, const std::string& what, const std::string& advice, Rest rest)
    : path_(std::move(path)), what_(what), advice_(advice), rest_(rest) {
  try {
    wait_for_lease(lock());
  } catch (...) {
    if (fd_ >= 0) ::close(fd_);
    throw;
  }
}

UsageError FileLock::in_use() const {
  return UsageError("{} is in use by {}; {}", what_, name_in(text_of(fd_)), advice_);
}

bool FileLock::is_of_this_host() const { return kernel_in(text_of(fd_)) == kernel_in(me()); }

FileLock::Locked FileLock::lock() {
  for (int tries = 0;; ++tries) {
    fd_ = open_shared(path_, 0);
    if (fd_ < 0) throw IoError("{}: cannot write {}: {}", what_, path_, std::strerror(errno));
    struct flock l = whole_file();
    int result;
    while ((result = ::fcntl(fd_, F_OFD_SETLK, &l)) != 0 && errno == EINTR) {
    }
    if (result != 0 && (errno == EAGAIN || errno == EACCES)) {
      // A file server keeps the lock of a host that has died. The lease of another host says more.
      const auto lease = look(lease_path(path_));
      if (is_former_start(text_of(fd_))) return Locked::elsewhere;
      if (!lease || kernel_in(lease->text) == kernel_in(me()) || is_of_this_host()) throw in_use();
      return Locked::elsewhere;
    }
    if (result != 0) return Locked::unknown;
    // A holder that removes its file when it ends may have done so between this open and this lock.
    struct stat mine {
    }, there{};
    const bool same = ::fstat(fd_, &mine) == 0 && ::stat(path_.c_str(), &there) == 0 &&
                      mine.st_ino == there.st_ino && mine.st_dev == there.st_dev;
    if (same) {
      put(fd_, me());
      return Locked::here;
    }
    if (tries == kTries) throw in_use();
    ::close(fd_);
    fd_ = -1;
  }
}

void FileLock::wait_for_lease(Locked locked) {
  const std::string path = lease_path(path_), own_kernel = kernel_in(me());
  const double patience = locked == Locked::elsewhere ? lease_times().stale : lease_times().takeover;
  const double begin = seconds();
  // A former start of this job ends soon, and its results are not used any more.
  const bool former = locked == Locked::elsewhere && is_former_start(text_of(fd_));
  std::optional<double> first;  // the lease's time when it was first seen
  for (;;) {
    const auto lease = look(path);
    if (!lease && locked == Locked::elsewhere) {  // its holder has ended
      ::close(fd_);
      fd_ = -1;
      locked = lock();
      if (locked == Locked::elsewhere) sleep_seconds(std::min(0.25, lease_times().takeover / 20));
      if (locked != Locked::elsewhere || seconds() - begin <= patience) continue;
    }
    const bool free = !lease || (locked == Locked::here && kernel_in(lease->text) == own_kernel) ||
                      is_stale(path, *lease) || seconds() - begin > patience;
    if (free) {
      // Another process of this host may have got the lock meanwhile.
      if (locked == Locked::elsewhere && !former && is_of_this_host()) throw in_use();
      if (lease) ::unlink(path.c_str());
      const int fd = open_shared(path, O_EXCL);
      if (fd < 0 && errno == EEXIST) continue;  // another process was faster and renews its lease
      if (fd < 0) {
        warn("{}: cannot create the lease {}: {}; processes on other hosts may not notice that it is in use",
             what_, path, std::strerror(errno));
        return;
      }
      put(fd, me());
      lease_.reset(new Lease(path, fd));
      if (locked == Locked::elsewhere) replace_file();
      return;
    }
    if (!first) {
      first = lease->time;
      if (former)
        info("{}: {}, of a former start of this job, still holds it; waiting up to {:.0f} s for its end",
             what_, name_in(lease->text), patience);
      else
        info("{}: {} has used it; waiting up to {:.0f} s to find out whether it still does", what_,
             name_in(lease->text), patience);
    }
    if (lease->time != *first && !former)
      throw UsageError("{} is in use by {}; {}", what_, name_in(lease->text), advice_);
    sleep_seconds(std::min(0.25, lease_times().takeover / 20));
  }
}

// The file of a dead host's lock is replaced by one that this process has locked. REQUIRES: it has the lease.
void FileLock::replace_file() {
  const std::string temporary = fmt::format("{}.{}", path_, ::getpid());
  const int fd = open_shared(temporary, O_EXCL);
  if (fd < 0) return;  // the lease alone shows the holder, as on a file system without locks
  struct flock l = whole_file();
  if (::fcntl(fd, F_OFD_SETLK, &l) != 0 || ::rename(temporary.c_str(), path_.c_str()) != 0) {
    ::close(fd);
    ::unlink(temporary.c_str());
    return;
  }
  put(fd, me());
  ::close(fd_);
  fd_ = fd;
}

FileLock::~FileLock() {
  lease_.reset();
  if (rest_ == removes) ::unlink(path_.c_str());
  if (fd_ >= 0) ::close(fd_);
}

std::string lock_holder(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return "";
  struct flock l = whole_file();
  std::string who;
  const bool asked = ::fcntl(fd, F_OFD_GETLK, &l) == 0;
  if (asked && l.l_type != F_UNLCK) who = name_in(text_of(fd));
  ::close(fd);
  const auto lease = look(lease_path(path));
  if (!who.empty()) {
    const bool of_dead_host =
        lease && kernel_in(lease->text) != kernel_in(me()) && is_stale(lease_path(path), *lease);
    return of_dead_host ? "" : who;
  }
  if (!lease || (asked && kernel_in(lease->text) == kernel_in(me()))) return "";
  return is_stale(lease_path(path), *lease) ? "" : name_in(lease->text);
}

}  // namespace redco
