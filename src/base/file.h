// Files that survive a crash. redco writes every file through this header.
//
// Durable: when the function has returned, the new contents are on the disk under the new name. If the
// process or the machine dies earlier, the old contents are still there, complete. Relative paths start at
// the current directory. Several threads may call these functions at the same time on different files.
//
// Errors: a missing path is a UsageError; a file that ends before the requested bytes is a ContentsError;
// every other failure of the system is an IoError with the operation, the path and the reason (for a full
// disk also the bytes needed and the bytes free).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/types.h"

namespace redco {

// --- Queries ---

struct FileInfo {
  enum Kind : std::uint8_t { file, folder, link, other } kind;
  i64 size;
};
// Kind and size of what a path names; nullopt if it names nothing. follow: follow symbolic links (a dangling
// link names nothing).
std::optional<FileInfo> file_info(const std::string& path, bool follow = true);
// Differs between two versions of a file, even if a program resets the modification time. Equal stamps mean
// equal contents, unless the last change is as young as the resolution of the file system's clock.
struct FileStamp {
  u64 device = 0, inode = 0;
  i64 size = 0;
  i64 modified = 0, changed = 0;  // mtime and ctime: ns since 1970
  bool operator==(const FileStamp&) const = default;
};
// Links are followed.
FileStamp file_stamp(const std::string& path);
bool exists(const std::string& path);
bool is_folder(const std::string& path);
i64 file_size(const std::string& path);
// The names in a folder, sorted by bytes, without "." and "..".
std::vector<std::string> list_dir(const std::string& path);
// The target of a symbolic link; nullopt if the path is not a link.
std::optional<std::string> read_link(const std::string& path);
// Free bytes for this user on the file system of `path`. If `path` does not exist, its nearest existing
// parent is asked.
i64 disk_free(const std::string& path);

std::string join_path(const std::string& folder, const std::string& name);
std::string parent_path(const std::string& path);  // "." for a bare name
std::string file_name(const std::string& path);    // the part after the last /

// --- Reading ---

// An open file, read at offsets. If another file later gets the same name, this object still reads the file
// that it opened. Several threads may read at the same time.
class ReadFile {
 public:
  static ReadFile open(const std::string& path);
  ReadFile(ReadFile&& o) noexcept;
  ReadFile& operator=(ReadFile&& o) noexcept;
  ~ReadFile();

  const std::string& path() const { return path_; }
  i64 size() const { return size_; }  // at the time of opening
  // Fills to[0..n) from `offset` on. Throws ContentsError if the file ends earlier.
  void pread_exact(i64 offset, void* to, i64 n) const;

 private:
  ReadFile(std::string path, int fd, i64 size) : path_(std::move(path)), fd_(fd), size_(size) {}
  std::string path_;
  int fd_ = -1;
  i64 size_ = 0;
};

// A whole small file. Throws ContentsError if it has more than max_bytes.
std::string read_file(const std::string& path, i64 max_bytes);

// --- Writing ---

// Replaces the whole file by `bytes`, atomically and durably.
void write_file_durable(const std::string& path, std::string_view bytes);

// A file being written, at offsets in any order. commit() makes it appear under its name, complete and on the
// disk. Before that it is a temporary file in the same folder (`.NAME.tmp-*`), which the destructor removes.
// Only one thread at a time may use it, but several may call pwrite_direct() at the same time.
class DurableFile {
 public:
  // size: number of bytes if known in advance. They are reserved on the disk now, so that a full disk is
  // found before the work, and the file has this size from then on.
  static DurableFile create(const std::string& path, i64 size = 0);
  DurableFile(DurableFile&& o) noexcept;
  DurableFile& operator=(DurableFile&&) = delete;
  ~DurableFile();

  const std::string& path() const { return path_; }
  void pwrite(i64 offset, const void* from, i64 n);
  // The same past the page cache, where the file system can (O_DIRECT). REQUIRES: offset and the address of
  // `from` are multiples of kDirect.
  static constexpr i64 kDirect = 4096;
  void pwrite_direct(i64 offset, const void* from, i64 n);
  void append(std::string_view bytes);  // after the last byte written or reserved
  void commit();                        // REQUIRES: not committed yet

 private:
  DurableFile() = default;
  std::string path_, temp_;
  int fd_ = -1;
  int direct_ = -1;  // the same file, opened with O_DIRECT
  bool can_direct_ = true;
  i64 end_ = 0;
};

// A file that grows by whole lines (logs, metrics, predictions). Each append is one system call, so a crash
// can damage only the last line. open() removes an incomplete last line, or, if keep_bytes >= 0, everything
// after the first keep_bytes bytes.
class AppendFile {
 public:
  static AppendFile open(const std::string& path, i64 keep_bytes = -1);
  AppendFile(AppendFile&& o) noexcept;
  AppendFile& operator=(AppendFile&&) = delete;
  ~AppendFile();

  i64 size() const { return size_; }
  void append(std::string_view lines);  // REQUIRES: ends with a newline
  void sync();                          // on return, all appended lines are on the disk

 private:
  AppendFile() = default;
  std::string path_;
  int fd_ = -1;
  i64 size_ = 0;
};

// Appends a line, which ends with a newline, in one write, and syncs it. Several processes of a host may do
// so at the same time. If a crash has cut the file's last line, that line ends there.
void append_line(const std::string& path, std::string_view line);

// --- Names ---

void make_dirs(const std::string& path);  // also creates missing parents; durable
// Removes a file, a link, or a folder with its contents. Links are not followed. A missing path is no error.
// Not atomic: rename the folder first.
void remove_tree(const std::string& path);
void remove_file(const std::string& path);  // durable; a missing file is no error
void rename_durable(const std::string& from, const std::string& to);
// Exchanges the two names in one atomic step. Returns false if the file system cannot do it.
bool exchange_durable(const std::string& a, const std::string& b);
// Makes `link` name `target` (a text relative to the link's folder) in one atomic step, replacing an older
// link.
void symlink_durable(const std::string& target, const std::string& link);
void sync_file(const std::string& path);
void sync_dir(const std::string& path);  // puts the folder's list of names on the disk

}  // namespace redco
