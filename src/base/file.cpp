#include "base/file.h"

#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <mutex>

#include "base/error.h"
#include "base/syscalls.h"
#include "base/temporaries.h"
#include "base/words.h"

namespace redco {
namespace {

constexpr i64 kMaxCall = 1 << 30;  // Linux transfers at most 2^31 - 4096 bytes per call

[[noreturn]] void fail(const char* operation, const std::string& path, int error, i64 needed = -1) {
  if ((error == ENOSPC || error == EDQUOT) && needed >= 0) {
    struct statvfs fs {};
    bool known = ::statvfs(parent_path(path).c_str(), &fs) == 0;
    throw IoError(
        "[file] cannot {} {}: {}: {} more needed, {} free; free some space, or choose another workdir",
        operation, path, std::strerror(error), human_bytes(static_cast<u64>(needed)),
        known ? human_bytes(static_cast<u64>(fs.f_bavail) * static_cast<u64>(fs.f_frsize)) : "unknown");
  }
  throw IoError("[file] cannot {} {}: {}", operation, path, std::strerror(error));
}

[[noreturn]] void fail_missing(const char* operation, const std::string& path, int error) {
  if (error == ENOENT || error == ENOTDIR) throw UsageError("[file] {} doesn't exist", path);
  fail(operation, path, error);
}

template <class F>
auto retry(F f) {
  for (;;) {
    auto r = f();
    if (r != -1 || errno != EINTR) return r;
  }
}

int open_fd(const char* operation, const std::string& path, int flags) {
  int fd = retry([&] { return sys::open(path, flags); });
  if (fd < 0) fail_missing(operation, path, errno);
  return fd;
}

void sync_fd(int fd, const std::string& path) {
  if (retry([&] { return sys::fsync(fd, path); }) != 0) fail("sync", path, errno);
}

// Linux closes the descriptor even when close() fails, so close() is never repeated. NFS reports failed
// writes here.
void close_fd(int fd, const std::string& path) {
  if (sys::close(fd, path) != 0 && errno != EINTR) fail("close", path, errno);
}

// Closes a descriptor when an error leaves the scope.
struct Closer {
  int fd;
  const std::string& path;
  ~Closer() {
    if (fd >= 0) sys::close(fd, path);
  }
  int release() { return std::exchange(fd, -1); }
};

void write_all(int fd, const std::string& path, i64 offset, const char* from, i64 n) {
  while (n > 0) {
    ssize_t w = retry(
        [&] { return sys::pwrite(fd, path, from, static_cast<size_t>(std::min(n, kMaxCall)), offset); });
    if (w <= 0) fail("write", path, w == 0 ? EIO : errno, n);
    from += w;
    offset += w;
    n -= w;
  }
}

// A temporary name in the folder of `path` that no other process or thread uses. File names are limited to
// 255 bytes, so the original name is cut to leave room for the suffix.
std::string temp_name(const std::string& path) {
  static std::atomic<u32> counter{0};
  return join_path(parent_path(path), fmt::format(".{}.tmp-{}-{}", file_name(path).substr(0, 200), ::getpid(),
                                                  counter.fetch_add(1)));
}
constexpr int kTempTries = 100;  // killed processes with the same id may have left such files

}  // namespace

std::optional<FileInfo> file_info(const std::string& path, bool follow) {
  struct stat st {};
  if (retry([&] { return sys::stat(path, &st, follow); }) != 0) {
    if (errno == ENOENT || errno == ENOTDIR || errno == ENAMETOOLONG) return std::nullopt;
    fail("look at", path, errno);
  }
  FileInfo::Kind kind = S_ISREG(st.st_mode)   ? FileInfo::file
                        : S_ISDIR(st.st_mode) ? FileInfo::folder
                        : S_ISLNK(st.st_mode) ? FileInfo::link
                                              : FileInfo::other;
  return FileInfo{kind, static_cast<i64>(st.st_size)};
}

FileStamp file_stamp(const std::string& path) {
  struct stat st {};
  if (retry([&] { return sys::stat(path, &st, true); }) != 0) fail_missing("look at", path, errno);
  const auto ns = [](const timespec& t) { return i64{t.tv_sec} * 1'000'000'000 + t.tv_nsec; };
  return {static_cast<u64>(st.st_dev), static_cast<u64>(st.st_ino), static_cast<i64>(st.st_size),
          ns(st.st_mtim), ns(st.st_ctim)};
}

bool exists(const std::string& path) { return file_info(path).has_value(); }

bool is_folder(const std::string& path) {
  auto info = file_info(path);
  return info && info->kind == FileInfo::folder;
}

i64 file_size(const std::string& path) {
  auto info = file_info(path);
  if (!info) throw UsageError("[file] {} doesn't exist", path);
  return info->size;
}

std::vector<std::string> list_dir(const std::string& path) {
  std::vector<std::string> names;
  if (retry([&] { return sys::list(path, &names); }) != 0) fail_missing("list", path, errno);
  std::sort(names.begin(), names.end());
  return names;
}

std::optional<std::string> read_link(const std::string& path) {
  std::string text(4096, '\0');
  ssize_t n = retry([&] { return sys::readlink(path, text.data(), text.size()); });
  if (n < 0) {
    if (errno == EINVAL || errno == ENOENT || errno == ENOTDIR) return std::nullopt;
    fail("read the link", path, errno);
  }
  text.resize(static_cast<size_t>(n));
  return text;
}

i64 disk_free(const std::string& path) {
  std::string at = path.empty() ? "." : path;
  for (;;) {
    struct statvfs fs {};
    if (::statvfs(at.c_str(), &fs) == 0) return static_cast<i64>(fs.f_bavail) * static_cast<i64>(fs.f_frsize);
    std::string up = parent_path(at);
    if ((errno != ENOENT && errno != ENOTDIR) || up == at) fail("ask for the free space of", path, errno);
    at = up;
  }
}

std::string join_path(const std::string& folder, const std::string& name) {
  if (folder.empty()) return name;
  return folder.back() == '/' ? folder + name : folder + "/" + name;
}

std::string parent_path(const std::string& path) {
  size_t end = path.find_last_not_of('/');
  if (end == std::string::npos) return path.empty() ? "." : "/";
  size_t slash = path.rfind('/', end);
  if (slash == std::string::npos) return ".";
  size_t last = path.find_last_not_of('/', slash);
  return last == std::string::npos ? "/" : path.substr(0, last + 1);
}

std::string file_name(const std::string& path) {
  size_t end = path.find_last_not_of('/');
  if (end == std::string::npos) return "";
  size_t slash = path.rfind('/', end);
  return path.substr(slash == std::string::npos ? 0 : slash + 1,
                     end - (slash == std::string::npos ? 0 : slash + 1) + 1);
}

ReadFile ReadFile::open(const std::string& path) {
  // O_NONBLOCK: opening a pipe that has no writer would block. Regular files ignore the flag.
  Closer c{open_fd("open", path, O_RDONLY | O_NONBLOCK), path};
  struct stat st {};
  if (sys::fstat(c.fd, path, &st) != 0) fail("look at", path, errno);
  if (!S_ISREG(st.st_mode))
    throw UsageError("[file] {} is {}, expected a file", path,
                     S_ISDIR(st.st_mode) ? "a folder" : "not a regular file");
  return ReadFile(path, c.release(), static_cast<i64>(st.st_size));
}

ReadFile::ReadFile(ReadFile&& o) noexcept
    : path_(std::move(o.path_)), fd_(std::exchange(o.fd_, -1)), size_(o.size_) {}

ReadFile& ReadFile::operator=(ReadFile&& o) noexcept {
  std::swap(path_, o.path_);
  std::swap(fd_, o.fd_);
  std::swap(size_, o.size_);
  return *this;
}

ReadFile::~ReadFile() {
  if (fd_ >= 0) sys::close(fd_, path_);
}

void ReadFile::pread_exact(i64 offset, void* to, i64 n) const {
  char* p = static_cast<char*>(to);
  while (n > 0) {
    ssize_t r =
        retry([&] { return sys::pread(fd_, path_, p, static_cast<size_t>(std::min(n, kMaxCall)), offset); });
    if (r < 0) fail("read", path_, errno);
    if (r == 0)
      throw ContentsError("[file] {} ends at byte {}, but {} more bytes were expected", path_, offset, n);
    p += r;
    offset += r;
    n -= r;
  }
}

std::string read_file(const std::string& path, i64 max_bytes) {
  ReadFile f = ReadFile::open(path);
  if (f.size() > max_bytes)
    throw ContentsError("[file] {} has {}; expected at most {}", path,
                        human_bytes(static_cast<u64>(f.size())), human_bytes(static_cast<u64>(max_bytes)));
  std::string text(static_cast<size_t>(f.size()), '\0');
  f.pread_exact(0, text.data(), f.size());
  return text;
}

void write_file_durable(const std::string& path, std::string_view bytes) {
  DurableFile f = DurableFile::create(path, static_cast<i64>(bytes.size()));
  f.pwrite(0, bytes.data(), static_cast<i64>(bytes.size()));
  f.commit();
}

DurableFile DurableFile::create(const std::string& path, i64 size) {
  DurableFile f;
  f.path_ = path;
  for (int tries = 0; f.fd_ < 0; ++tries) {
    std::string temp = temp_name(path);
    f.fd_ = retry([&] { return sys::open(temp, O_WRONLY | O_CREAT | O_EXCL); });
    if (f.fd_ >= 0) {
      f.temp_ = std::move(temp);
      add_temporary(f.temp_);
      break;
    }
    if (errno == EEXIST && tries < kTempTries) continue;
    if (errno == ENOENT || errno == ENOTDIR)
      throw UsageError("[file] cannot create {}: the folder {} doesn't exist", path, parent_path(path));
    fail("create", path, errno, size);
  }
  if (size > 0) {
    int r = retry([&] { return sys::fallocate(f.fd_, f.temp_, size); });
    // Some file systems, such as NFS before 4.2, cannot reserve space: set only the size.
    if (r != 0 && (errno == EOPNOTSUPP || errno == ENOSYS))
      r = retry([&] { return sys::ftruncate(f.fd_, f.temp_, size); });
    if (r != 0) fail("reserve space for", path, errno, size);
    f.end_ = size;
  }
  return f;
}

DurableFile::DurableFile(DurableFile&& o) noexcept
    : path_(std::move(o.path_)),
      temp_(std::move(o.temp_)),
      fd_(std::exchange(o.fd_, -1)),
      direct_(std::exchange(o.direct_, -1)),
      can_direct_(o.can_direct_),
      end_(o.end_) {
  o.temp_.clear();
}

DurableFile::~DurableFile() {
  if (direct_ >= 0) sys::close(direct_, temp_);
  if (fd_ >= 0) sys::close(fd_, temp_);
  if (temp_.empty()) return;
  sys::unlink(temp_);
  forget_temporary(temp_);
}

void DurableFile::pwrite(i64 offset, const void* from, i64 n) {
  REDCO_CHECK(fd_ >= 0 && offset >= 0 && n >= 0, "{}: offset {} bytes {}", path_, offset, n);
  write_all(fd_, path_, offset, static_cast<const char*>(from), n);
  end_ = std::max(end_, offset + n);
}

void DurableFile::pwrite_direct(i64 offset, const void* from, i64 n) {
  REDCO_CHECK(
      fd_ >= 0 && n >= 0 && offset % kDirect == 0 && reinterpret_cast<std::uintptr_t>(from) % kDirect == 0,
      "{}: offset {} bytes {}", path_, offset, n);
  const int direct = [&] {
    static std::mutex opening;
    const std::lock_guard lock(opening);
    if (can_direct_ && direct_ < 0 && n >= kDirect) {
      direct_ = retry([&] { return sys::open(temp_, O_WRONLY | O_DIRECT); });
      can_direct_ = direct_ >= 0;
    }
    return direct_;
  }();
  const auto* p = static_cast<const char*>(from);
  // Whole blocks. What a call leaves, and what it refuses, goes through the page cache.
  i64 done = 0;
  while (direct >= 0 && n - done >= kDirect) {
    const i64 whole = std::min(n - done, kMaxCall) / kDirect * kDirect;
    const ssize_t w = retry(
        [&] { return sys::pwrite(direct, temp_, p + done, static_cast<size_t>(whole), offset + done); });
    if (w < 0 && errno != EINVAL) fail("write", path_, errno, n - done);
    if (w < kDirect) break;
    done += w / kDirect * kDirect;
  }
  write_all(fd_, path_, offset + done, p + done, n - done);
}

void DurableFile::append(std::string_view bytes) {
  pwrite(end_, bytes.data(), static_cast<i64>(bytes.size()));
}

void DurableFile::commit() {
  REDCO_CHECK(fd_ >= 0, "{} is already committed", path_);
  if (direct_ >= 0) close_fd(std::exchange(direct_, -1), temp_);
  sync_fd(fd_, temp_);
  close_fd(std::exchange(fd_, -1), temp_);
  if (retry([&] { return sys::rename(temp_, path_); }) != 0) fail("put in place", path_, errno);
  forget_temporary(temp_);
  temp_.clear();
  sync_dir(parent_path(path_));
}

AppendFile AppendFile::open(const std::string& path, i64 keep_bytes) {
  AppendFile f;
  f.path_ = path;
  bool is_new = !exists(path);
  f.fd_ = open_fd("open", path, O_RDWR | O_CREAT);
  struct stat st {};
  if (sys::fstat(f.fd_, path, &st) != 0) fail("look at", path, errno);
  i64 keep = std::min<i64>(st.st_size, keep_bytes < 0 ? st.st_size : keep_bytes);
  // Go back to the last newline: a crash may have cut the line after it.
  char block[4096];
  while (keep > 0) {
    i64 begin = std::max<i64>(0, keep - static_cast<i64>(sizeof(block)));
    ssize_t r =
        retry([&] { return sys::pread(f.fd_, path, block, static_cast<size_t>(keep - begin), begin); });
    if (r < 0) fail("read", path, errno);
    if (r < keep - begin) {
      if (r == 0) fail("read", path, EIO);
      keep = begin + r;
      continue;
    }
    const void* newline = ::memrchr(block, '\n', static_cast<size_t>(r));
    if (newline) {
      keep = begin + (static_cast<const char*>(newline) - block) + 1;
      break;
    }
    keep = begin;
  }
  if (keep != st.st_size && retry([&] { return sys::ftruncate(f.fd_, path, keep); }) != 0)
    fail("cut", path, errno);
  f.size_ = keep;
  if (is_new) sync_dir(parent_path(path));
  return f;
}

AppendFile::AppendFile(AppendFile&& o) noexcept
    : path_(std::move(o.path_)), fd_(std::exchange(o.fd_, -1)), size_(o.size_) {}

AppendFile::~AppendFile() {
  if (fd_ >= 0) sys::close(fd_, path_);
}

void AppendFile::append(std::string_view lines) {
  REDCO_CHECK(fd_ >= 0 && (lines.empty() || lines.back() == '\n'), "{}", path_);
  write_all(fd_, path_, size_, lines.data(), static_cast<i64>(lines.size()));
  size_ += static_cast<i64>(lines.size());
}

void AppendFile::sync() { sync_fd(fd_, path_); }

void append_line(const std::string& path, std::string_view line) {
  REDCO_CHECK(!line.empty() && line.back() == '\n', "{}", path);
  const bool is_new = !exists(path);
  Closer c{open_fd("open", path, O_RDWR | O_CREAT | O_APPEND), path};
  struct stat st {};
  if (sys::fstat(c.fd, path, &st) != 0) fail("look at", path, errno);
  char last = '\n';
  if (st.st_size > 0 && retry([&] { return sys::pread(c.fd, path, &last, 1, st.st_size - 1); }) < 0)
    fail("read", path, errno);
  // If another process is just appending its line, this may see a part of it: then an empty line follows it.
  const std::string text = (last == '\n' ? "" : "\n") + std::string(line);
  // With O_APPEND Linux ignores the offset and writes at the end.
  write_all(c.fd, path, st.st_size, text.data(), static_cast<i64>(text.size()));
  sync_fd(c.fd, path);
  if (is_new) sync_dir(parent_path(path));
}

void make_dirs(const std::string& path) {
  std::vector<std::string> missing;
  for (std::string at = path.empty() ? "." : path;; at = parent_path(at)) {
    auto info = file_info(at);
    if (info && info->kind != FileInfo::folder)
      throw UsageError("[file] cannot create the folder {}: {} exists and is not a folder", path, at);
    if (info) break;
    missing.push_back(at);
    if (parent_path(at) == at) break;
  }
  for (; !missing.empty(); missing.pop_back()) {
    const std::string& at = missing.back();
    if (retry([&] { return sys::mkdir(at); }) != 0) {
      int error = errno;
      if (error != EEXIST || !is_folder(at)) fail("create the folder", at, error);
    }
    sync_dir(parent_path(at));
  }
}

void remove_tree(const std::string& path) {
  // Listings of network file systems may be stale, so a missing entry counts as removed.
  const auto gone = [](int error) { return error == ENOENT || error == ESTALE; };
  auto info = file_info(path, false);
  if (!info) return;
  if (info->kind == FileInfo::folder) {
    std::vector<std::string> names;
    if (retry([&] { return sys::list(path, &names); }) != 0 && !gone(errno)) fail("list", path, errno);
    for (const std::string& name : names) remove_tree(join_path(path, name));
    if (retry([&] { return sys::rmdir(path); }) != 0 && !gone(errno)) fail("remove the folder", path, errno);
  } else if (retry([&] { return sys::unlink(path); }) != 0 && !gone(errno)) {
    fail("remove", path, errno);
  }
}

void remove_file(const std::string& path) {
  if (retry([&] { return sys::unlink(path); }) != 0) {
    if (errno == ENOENT) return;
    fail("remove", path, errno);
  }
  sync_dir(parent_path(path));
}

void rename_durable(const std::string& from, const std::string& to) {
  if (retry([&] { return sys::rename(from, to); }) != 0) {
    int error = errno;
    throw IoError("[file] cannot rename {} to {}: {}", from, to, std::strerror(error));
  }
  sync_dir(parent_path(to));
  if (parent_path(from) != parent_path(to)) sync_dir(parent_path(from));
}

bool exchange_durable(const std::string& a, const std::string& b) {
  if (retry([&] { return sys::exchange(a, b); }) != 0) {
    int error = errno;
    if (error == EINVAL || error == ENOSYS || error == EOPNOTSUPP) return false;
    throw IoError("[file] cannot exchange {} and {}: {}", a, b, std::strerror(error));
  }
  sync_dir(parent_path(a));
  if (parent_path(a) != parent_path(b)) sync_dir(parent_path(b));
  return true;
}

void symlink_durable(const std::string& target, const std::string& link) {
  std::string temp;
  for (int tries = 0;; ++tries) {
    temp = temp_name(link);
    if (retry([&] { return sys::symlink(target, temp); }) == 0) break;
    if (errno != EEXIST || tries >= kTempTries) fail("create the link", link, errno);
  }
  if (retry([&] { return sys::rename(temp, link); }) != 0) {
    int error = errno;
    sys::unlink(temp);
    fail("put the link in place", link, error);
  }
  sync_dir(parent_path(link));
}

void sync_file(const std::string& path) {
  Closer c{open_fd("open", path, O_RDONLY), path};
  sync_fd(c.fd, path);
  close_fd(c.release(), path);
}

void sync_dir(const std::string& path) {
  Closer c{open_fd("open the folder", path, O_RDONLY | O_DIRECTORY), path};
  // Some network file systems answer EINVAL: they cannot sync a folder and do not need to.
  if (retry([&] { return sys::fsync(c.fd, path); }) != 0 && errno != EINVAL && errno != EOPNOTSUPP)
    fail("sync the folder", path, errno);
  close_fd(c.release(), path);
}

}  // namespace redco
