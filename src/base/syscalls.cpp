#include "base/syscalls.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <mutex>

#include "base/activity.h"
#include "base/error.h"

namespace redco::sys {
namespace {

constexpr std::array<const char*, kOps> kNames = {"open",   "read",    "write",  "allocate", "sync", "close",
                                                  "rename", "symlink", "unlink", "mkdir",    "list", "stat"};
struct NamedErrno {
  const char* name;
  int error;
};
constexpr NamedErrno kErrors[] = {{"EIO", EIO},       {"ENOSPC", ENOSPC}, {"EDQUOT", EDQUOT},
                                  {"EACCES", EACCES}, {"EROFS", EROFS},   {"EINTR", EINTR},
                                  {"EMFILE", EMFILE}, {"ESTALE", ESTALE}};
const std::string kNone;

std::atomic<bool> active{true};  // true until REDCO_FAULT_IO has been read
std::once_flag environment;
std::mutex mutex;  // guards hook
Hook hook;         // NOLINT: one per process

Verdict ask(const Call& call) {
  activity::tick();
  if (!active.load(std::memory_order_acquire)) return {};
  std::call_once(environment, [] {
    const char* text = getenv("REDCO_FAULT_IO");
    std::lock_guard lock(mutex);
    if (text && *text) hook = parse_fault(text);
    active.store(static_cast<bool>(hook), std::memory_order_release);
  });
  std::lock_guard lock(mutex);
  Verdict v = hook ? hook(call) : Verdict{};
  if (v.kind == Verdict::kill && call.op != Op::write) ::kill(getpid(), SIGKILL);
  if (v.kind == Verdict::fail) errno = v.error;
  return v;
}

bool fails(const Call& call) { return ask(call).kind == Verdict::fail; }

}  // namespace

const char* name_of(Op op) { return kNames.at(static_cast<size_t>(op)); }

void set_hook(Hook h) {
  std::call_once(environment, [] {});  // a hook set by a test takes precedence over REDCO_FAULT_IO
  std::lock_guard lock(mutex);
  hook = std::move(h);
  active.store(static_cast<bool>(hook), std::memory_order_release);
}

Hook parse_fault(const std::string& text) {
  auto bad = [&]() -> UsageError {
    return UsageError(
        "[fault] REDCO_FAULT_IO={} is not OP:N[:HOW]; e.g. write:3:ENOSPC, sync:1 or any:17:kill", text);
  };
  size_t a = text.find(':');
  if (a == std::string::npos) throw bad();
  size_t b = text.find(':', a + 1);
  std::string op = text.substr(0, a), how = b == std::string::npos ? "EIO" : text.substr(b + 1);
  std::string count = text.substr(a + 1, b == std::string::npos ? b : b - a - 1);
  int which = -1;
  for (int i = 0; i < kOps; ++i)
    if (op == kNames[i]) which = i;
  if (which < 0 && op != "any") throw bad();
  i64 n = 0;
  auto [end, ec] = std::from_chars(count.data(), count.data() + count.size(), n);
  if (ec != std::errc() || end != count.data() + count.size() || n < 1) throw bad();
  Verdict verdict{.kind = Verdict::kill};
  if (how != "kill") {
    verdict.kind = Verdict::fail;
    for (const NamedErrno& e : kErrors)
      if (how == e.name) verdict.error = e.error;
    if (verdict.error == 0) throw bad();
  }
  return [which, n, verdict, seen = i64{0}](const Call& call) mutable {
    if (which >= 0 && static_cast<int>(call.op) != which) return Verdict{};
    return ++seen == n ? verdict : Verdict{};
  };
}

int open(const std::string& path, int flags, mode_t mode) {
  if (fails({Op::open, path, kNone, 0, 0, (flags & O_CREAT) != 0})) return -1;
  return ::open(path.c_str(), flags | O_CLOEXEC, mode);
}

ssize_t pread(int fd, const std::string& path, void* to, size_t n, i64 offset) {
  Verdict v = ask({Op::read, path, kNone, offset, static_cast<i64>(n)});
  if (v.kind == Verdict::fail) return -1;
  if (v.kind == Verdict::shorten) n = (n + 1) / 2;
  return ::pread(fd, to, n, offset);
}

ssize_t pwrite(int fd, const std::string& path, const void* from, size_t n, i64 offset) {
  Verdict v = ask({Op::write, path, kNone, offset, static_cast<i64>(n)});
  if (v.kind == Verdict::fail) return -1;
  if (v.kind == Verdict::shorten || v.kind == Verdict::kill) n = (n + 1) / 2;
  ssize_t r = ::pwrite(fd, from, n, offset);
  if (v.kind == Verdict::kill) ::kill(getpid(), SIGKILL);
  return r;
}

int fallocate(int fd, const std::string& path, i64 bytes) {
  if (fails({Op::allocate, path, kNone, 0, bytes})) return -1;
  return ::fallocate(fd, 0, 0, bytes);
}

int ftruncate(int fd, const std::string& path, i64 bytes) {
  if (fails({Op::allocate, path, kNone, 0, bytes})) return -1;
  return ::ftruncate(fd, bytes);
}

int fsync(int fd, const std::string& path) {
  Verdict v = ask({Op::sync, path, kNone});
  if (v.kind == Verdict::fail) return -1;
  return v.kind == Verdict::skip ? 0 : ::fsync(fd);
}

int close(int fd, const std::string& path) {
  bool failed = fails({Op::close, path, kNone});
  int error = errno;
  int r = ::close(fd);  // close() closes the descriptor even if it reports an error
  if (failed) {
    errno = error;
    return -1;
  }
  return r;
}

int rename(const std::string& from, const std::string& to) {
  if (fails({Op::rename, from, to})) return -1;
  return ::rename(from.c_str(), to.c_str());
}

int exchange(const std::string& a, const std::string& b) {
  if (fails({Op::rename, a, b, 0, 0, true})) return -1;
  return ::renameat2(AT_FDCWD, a.c_str(), AT_FDCWD, b.c_str(), RENAME_EXCHANGE);
}

int symlink(const std::string& target, const std::string& link) {
  if (fails({Op::symlink, link, target})) return -1;
  return ::symlink(target.c_str(), link.c_str());
}

int unlink(const std::string& path) {
  if (fails({Op::unlink, path, kNone})) return -1;
  return ::unlink(path.c_str());
}

int rmdir(const std::string& path) {
  if (fails({Op::unlink, path, kNone})) return -1;
  return ::rmdir(path.c_str());
}

int mkdir(const std::string& path, mode_t mode) {
  if (fails({Op::mkdir, path, kNone})) return -1;
  return ::mkdir(path.c_str(), mode);
}

int stat(const std::string& path, struct ::stat* st, bool follow) {
  if (fails({Op::stat, path, kNone})) return -1;
  return follow ? ::stat(path.c_str(), st) : ::lstat(path.c_str(), st);
}

int fstat(int fd, const std::string& path, struct ::stat* st) {
  if (fails({Op::stat, path, kNone})) return -1;
  return ::fstat(fd, st);
}

ssize_t readlink(const std::string& path, char* to, size_t n) {
  if (fails({Op::stat, path, kNone})) return -1;
  return ::readlink(path.c_str(), to, n);
}

int list(const std::string& path, std::vector<std::string>* names) {
  if (fails({Op::list, path, kNone})) return -1;
  DIR* dir = ::opendir(path.c_str());
  if (!dir) return -1;
  names->clear();
  for (;;) {
    errno = 0;
    dirent* e = ::readdir(dir);
    if (!e) break;
    std::string name = e->d_name;
    if (name != "." && name != "..") names->push_back(std::move(name));
  }
  int error = errno;
  ::closedir(dir);
  errno = error;
  return error ? -1 : 0;
}

}  // namespace redco::sys
