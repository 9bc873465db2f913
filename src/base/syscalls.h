// Wrappers of the system calls that touch files, so that a test can make the N-th call fail.
//
// Each function behaves like the system call of the same name (-1 and errno), except that a hook is called
// first. Only base/file.cpp calls them; all other code uses base/file.h. Without a hook a call costs one
// additional atomic load.
//
// The environment can also inject a fault into a running program: REDCO_FAULT_IO=OP:N[:HOW]. OP is the name
// of an Op or `any`, N counts from 1 in this process, HOW is the name of an error (default EIO) or `kill`.
// Examples: `write:3:ENOSPC`, `any:17:kill`.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "base/types.h"

namespace redco::sys {

enum class Op : std::uint8_t {
  open,
  read,
  write,
  allocate,
  sync,
  close,
  rename,
  symlink,
  unlink,
  mkdir,
  list,
  stat
};
constexpr int kOps = 12;
const char* name_of(Op op);

// A call that is about to be made.
struct Call {
  Op op;
  const std::string& path;  // rename: the old name; symlink: the link
  const std::string& to;    // rename: the new name; symlink: the target; otherwise ""
  i64 offset = 0;           // read, write
  i64 bytes = 0;            // read, write, allocate
  bool creates = false;     // open: creates a new, empty file; rename: exchanges the two names
};

// What the hook decides.
struct Verdict {
  enum Kind : std::uint8_t {
    proceed,
    fail,     // the call is not made; errno = error
    skip,     // sync: not made but reported as done, so that tests do not wait for the disk; others: proceed
    shorten,  // read and write: half of the bytes (at least one); others: proceed
    kill,     // SIGKILL to this process: after half of the bytes of a write, before any other call
  } kind = proceed;
  int error = 0;
};

// Called before each system call on the calling thread, one call at a time. An empty hook removes it. Only
// for tests.
using Hook = std::function<Verdict(const Call&)>;
void set_hook(Hook hook);

// The hook described by the text of REDCO_FAULT_IO. Throws UsageError on a malformed text.
Hook parse_fault(const std::string& text);

int open(const std::string& path, int flags, mode_t mode = 0666);
ssize_t pread(int fd, const std::string& path, void* to, size_t n, i64 offset);
ssize_t pwrite(int fd, const std::string& path, const void* from, size_t n, i64 offset);
int fallocate(int fd, const std::string& path, i64 bytes);
int ftruncate(int fd, const std::string& path, i64 bytes);
int fsync(int fd, const std::string& path);
int close(int fd, const std::string& path);
int rename(const std::string& from, const std::string& to);
int exchange(const std::string& a, const std::string& b);  // exchanges the two names; counts as Op::rename
int symlink(const std::string& target, const std::string& link);
int unlink(const std::string& path);
int rmdir(const std::string& path);  // counts as Op::unlink
int mkdir(const std::string& path, mode_t mode = 0777);
int stat(const std::string& path, struct ::stat* st, bool follow);
int fstat(int fd, const std::string& path, struct ::stat* st);
ssize_t readlink(const std::string& path, char* to, size_t n);  // counts as Op::stat
int list(const std::string& path, std::vector<std::string>* names);

}  // namespace redco::sys
