// The system calls that touch files, each in one place where a test can make the N-th of them fail.
//
// Every function behaves as its namesake (-1 and errno), except that a hook is asked first. Only
// base/file.cpp calls them; everybody else uses base/file.h. Without a hook a call costs one atomic load more
// than the bare one.
//
// A running program takes a fault from its environment too: REDCO_FAULT_IO=OP:N[:HOW], where OP is the name
// of an Op or `any`, N counts from 1 in this process, and HOW is an error's name (EIO by default) or `kill`.
// For example `write:3:ENOSPC` or `any:17:kill`.
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

// One call about to be made.
struct Call {
  Op op;
  const std::string& path;  // rename: the old name; symlink: the link
  const std::string& to;    // rename: the new name; symlink: what the link names; else ""
  i64 offset = 0;           // read, write
  i64 bytes = 0;            // read, write, allocate
  bool creates = false;     // open: makes a new, empty file; rename: the two names are exchanged
};

// What becomes of it.
struct Verdict {
  enum Kind : std::uint8_t {
    proceed,
    fail,     // not made; errno = error
    skip,     // sync: not made, reported as done, so that a test doesn't wait for the disk; else proceed
    shorten,  // read and write: half of the bytes (at least one); else proceed
    kill,     // this process gets SIGKILL: a write after half of its bytes, else before the call
  } kind = proceed;
  int error = 0;
};

// Called before each system call, from whichever thread makes it, one at a time. An empty hook removes it.
// Tests only.
using Hook = std::function<Verdict(const Call&)>;
void set_hook(Hook hook);

// The hook that REDCO_FAULT_IO describes. Throws UsageError on text that isn't of that form.
Hook parse_fault(const std::string& text);

int open(const std::string& path, int flags, mode_t mode = 0666);
ssize_t pread(int fd, const std::string& path, void* to, size_t n, i64 offset);
ssize_t pwrite(int fd, const std::string& path, const void* from, size_t n, i64 offset);
int fallocate(int fd, const std::string& path, i64 bytes);
int ftruncate(int fd, const std::string& path, i64 bytes);
int fsync(int fd, const std::string& path);
int close(int fd, const std::string& path);
int rename(const std::string& from, const std::string& to);
int exchange(const std::string& a, const std::string& b);  // both names swap what they name; an Op::rename
int symlink(const std::string& target, const std::string& link);
int unlink(const std::string& path);
int rmdir(const std::string& path);  // an Op::unlink
int mkdir(const std::string& path, mode_t mode = 0777);
int stat(const std::string& path, struct ::stat* st, bool follow);
int fstat(int fd, const std::string& path, struct ::stat* st);
ssize_t readlink(const std::string& path, char* to, size_t n);  // an Op::stat
int list(const std::string& path, std::vector<std::string>* names);

}  // namespace redco::sys
