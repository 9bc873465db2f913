#include "base/kept_memory.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/process.h"
#include "base/words.h"

namespace redco {

namespace {

constexpr const char* kMemoryFolder = "/dev/shm";
constexpr const char* kKeptFamily = "redco-kept-";
constexpr const char* kKeeperName = "keeper";
constexpr i64 kPidBytes = 24;

// "redco-kept-KEY."
std::string kept_prefix(const std::string& key) {
  return fmt::format("{}{}.", kKeptFamily, hex64(hash64(key)));
}
std::string kept_path(const std::string& key, const std::string& name) {
  return join_path(kMemoryFolder, kept_prefix(key) + name);
}

// The names in the folder that begin with `prefix`, without it.
std::vector<std::string> names_with(const std::string& prefix) {
  std::vector<std::string> out;
  std::error_code error;
  for (const auto& f : std::filesystem::directory_iterator(kMemoryFolder, error))
    if (const std::string name = f.path().filename().string(); name.starts_with(prefix))
      out.push_back(name.substr(prefix.size()));
  std::ranges::sort(out);
  return out;
}

// A file of this user only; -1: none.
int open_own(const std::string& path, int flags) {
  const int fd = ::open(path.c_str(), flags | O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0600);
  struct stat st {};
  if (fd < 0) return -1;
  if (::fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == ::geteuid()) return fd;
  ::close(fd);
  errno = EACCES;
  return -1;
}

std::byte* map_file(int fd, i64 bytes) {
  void* const p = ::mmap(nullptr, static_cast<std::size_t>(bytes), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  return p == MAP_FAILED ? nullptr : static_cast<std::byte*>(p);
}

std::string pid_in(int fd) {
  char text[kPidBytes] = "";
  const ssize_t n = ::pread(fd, text, sizeof text, 0);
  return n > 0 ? std::string(text, static_cast<std::size_t>(n)) : "";
}

// Whether a process holds the lock of a keeper's file.
bool is_locked(const std::string& path) {
  const int fd = open_own(path, 0);
  if (fd < 0) return false;
  const bool locked = ::flock(fd, LOCK_EX | LOCK_NB) != 0;
  ::close(fd);
  return locked;
}

}  // namespace

std::string kept_key(const std::string& job, const std::string& host) { return job + "@" + host; }

void KeptBlock::Unmap::operator()(std::byte* p) const { ::munmap(p, static_cast<std::size_t>(bytes)); }

KeptBlock KeptBlock::make(const std::string& key, const std::string& name, i64 bytes) {
  const std::string path = kept_path(key, name);
  const auto fail = [&](int why) {
    throw Error(
        ExitCode::doesnt_fit,
        fmt::format("[fault] fault.buddy needs {} more in {} of host {}: {}. Enlarge it (docker run "
                    "--shm-size, mount -o remount,size=), or set fault.buddy: false",
                    human_bytes(static_cast<u64>(bytes)), kMemoryFolder, host_name(), std::strerror(why)));
  };
  // Beyond this limit, the system would end the process (SIGXFSZ).
  rlimit limit{};
  if (::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < static_cast<rlim_t>(bytes)) fail(EFBIG);
  const int fd = open_own(path, O_CREAT);
  if (fd < 0) fail(errno);
  // Reserved pages cannot be missing later, when a write would end the process (SIGBUS).
  int why = ::posix_fallocate(fd, 0, bytes);
  std::byte* const p = why == 0 ? map_file(fd, bytes) : nullptr;
  if (why == 0 && !p) why = errno;
  ::close(fd);
  if (why == 0) return {p, bytes};
  ::unlink(path.c_str());
  fail(why);
  return {nullptr, 0};
}

std::optional<KeptBlock> KeptBlock::open(const std::string& key, const std::string& name) {
  const int fd = open_own(kept_path(key, name), 0);
  if (fd < 0) return std::nullopt;
  struct stat st {};
  std::byte* const p = ::fstat(fd, &st) == 0 && st.st_size > 0 ? map_file(fd, st.st_size) : nullptr;
  ::close(fd);
  return p ? std::optional(KeptBlock(p, st.st_size)) : std::nullopt;
}

std::vector<std::string> kept_blocks(const std::string& key) {
  std::vector<std::string> out = names_with(kept_prefix(key));
  std::erase(out, kKeeperName);
  return out;
}

void remove_kept_block(const std::string& key, const std::string& name) {
  ::unlink(kept_path(key, name).c_str());
}

bool is_kept(const std::string& key) { return is_locked(kept_path(key, kKeeperName)); }

Keeper::Keeper(const std::string& key) : key_(key) {
  remove_unkept_blocks();
  const std::string path = kept_path(key, kKeeperName), me = fmt::format("{}\n", ::getpid());
  for (;;) {
    fd_ = open_own(path, O_CREAT);
    if (fd_ < 0) throw IoError("[fault] cannot create {}: {}", path, std::strerror(errno));
    if (::ftruncate(fd_, 0) != 0 || ::pwrite(fd_, me.data(), me.size(), 0) < 0)
      throw IoError("[fault] cannot write {}: {}", path, std::strerror(errno));
    while (::flock(fd_, LOCK_EX) != 0 && errno == EINTR) {
    }
    struct stat mine {
    }, there{};
    if (::fstat(fd_, &mine) == 0 && ::stat(path.c_str(), &there) == 0 && mine.st_ino == there.st_ino) return;
    ::close(fd_);  // the former keeper has removed the file
  }
}

Keeper::~Keeper() {
  if (pid_in(fd_) == fmt::format("{}\n", ::getpid())) {  // else a later keeper waits for the lock
    for (const std::string& name : kept_blocks(key_)) remove_kept_block(key_, name);
    ::unlink(kept_path(key_, kKeeperName).c_str());
  }
  ::close(fd_);
}

void remove_unkept_blocks() {
  for (const std::string& name : names_with(kKeptFamily)) {
    if (!name.ends_with(std::string(".") + kKeeperName)) continue;
    const std::string prefix = kKeptFamily + name.substr(0, name.size() - std::strlen(kKeeperName));
    const std::string keeper = join_path(kMemoryFolder, prefix + kKeeperName);
    const int fd = open_own(keeper, 0);
    if (fd < 0) continue;
    if (::flock(fd, LOCK_EX | LOCK_NB) == 0) {
      for (const std::string& block : names_with(prefix))
        ::unlink(join_path(kMemoryFolder, prefix + block).c_str());
    }
    ::close(fd);
  }
}

}  // namespace redco
