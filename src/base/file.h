// Files that survive a crash. Everything redco writes goes through this header.
//
// Durable means: when the function has returned, the new contents are on the disk under the new name; when
// the process or the machine dies before, the old contents are there, whole. Paths are used as they are
// (relative ones from the current directory). All functions may be called from several threads at once, on
// different files.
//
// Errors: a path that doesn't exist where one must is a UsageError; a file that ends before the bytes asked
// for is a ContentsError; every other failure of the system is an IoError with the operation, the path and
// the reason (a full disk says how much was needed and how much is free).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/types.h"

namespace redco {

// --- Looking ---

struct FileInfo {
  enum Kind : std::uint8_t { file, folder, link, other } kind;
  i64 size;
};
// What a path names; nullopt if nothing. With follow, links are followed (a dangling link names nothing).
std::optional<FileInfo> file_info(const std::string& path, bool follow = true);
bool exists(const std::string& path);
bool is_folder(const std::string& path);
i64 file_size(const std::string& path);
// The names in a folder, sorted by bytes, without . and ..
std::vector<std::string> list_dir(const std::string& path);
// What a symbolic link says; nullopt if the path is no link.
std::optional<std::string> read_link(const std::string& path);
// Bytes that this user may still write where `path` lies or would lie (its nearest existing parent is asked).
i64 disk_free(const std::string& path);

std::string join_path(const std::string& folder, const std::string& name);
std::string parent_path(const std::string& path);  // "." for a bare name
std::string file_name(const std::string& path);    // the part after the last /

// --- Reading ---

// An open file, read at offsets. The contents stay those of the file that was opened, also when its name is
// given to another one. Reads may run at once.
class ReadFile {
 public:
  static ReadFile open(const std::string& path);
  ReadFile(ReadFile&& o) noexcept;
  ReadFile& operator=(ReadFile&& o) noexcept;
  ~ReadFile();

  const std::string& path() const { return path_; }
  i64 size() const { return size_; }  // when it was opened
  // Fills to[0..n) from `offset` on; ContentsError if the file ends before.
  void pread_exact(i64 offset, void* to, i64 n) const;

 private:
  ReadFile(std::string path, int fd, i64 size) : path_(std::move(path)), fd_(fd), size_(size) {}
  std::string path_;
  int fd_ = -1;
  i64 size_ = 0;
};

// A whole small file; ContentsError if it has more than max_bytes.
std::string read_file(const std::string& path, i64 max_bytes);

// --- Writing ---

// The whole file is replaced by `bytes`, at once and durably.
void write_file_durable(const std::string& path, std::string_view bytes);

// A file being written, at offsets in any order. It appears under its name, whole and on the disk, with
// commit(); until then it is a temporary one beside it (`.NAME.tmp-*`), removed by the destructor. Owned by
// one thread at a time.
class DurableFile {
 public:
  // size: bytes known in advance, reserved on the disk now, so that a full disk shows before the work. The
  // file has this size from then on.
  static DurableFile create(const std::string& path, i64 size = 0);
  DurableFile(DurableFile&& o) noexcept;
  DurableFile& operator=(DurableFile&&) = delete;
  ~DurableFile();

  const std::string& path() const { return path_; }
  void pwrite(i64 offset, const void* from, i64 n);
  void append(std::string_view bytes);  // after the furthest byte written or reserved
  void commit();                        // REQUIRES: not committed yet

 private:
  DurableFile() = default;
  std::string path_, temp_;
  int fd_ = -1;
  i64 end_ = 0;
};

// A file that grows by whole lines (logs, metrics, predictions), each written with one call so that a crash
// can cut only the last one. open() cuts what follows the last newline, or, where keep_bytes says so,
// everything after that many.
class AppendFile {
 public:
  static AppendFile open(const std::string& path, i64 keep_bytes = -1);
  AppendFile(AppendFile&& o) noexcept;
  AppendFile& operator=(AppendFile&&) = delete;
  ~AppendFile();

  i64 size() const { return size_; }
  void append(std::string_view lines);  // REQUIRES: ends with a newline
  void sync();                          // what was appended is on the disk when it returns

 private:
  AppendFile() = default;
  std::string path_;
  int fd_ = -1;
  i64 size_ = 0;
};

// --- Names ---

void make_dirs(const std::string& path);  // with the parents that are missing; durable
// Removes a file, link or folder with all in it; links aren't followed. Nothing there is fine. Not atomic:
// rename first.
void remove_tree(const std::string& path);
void remove_file(const std::string& path);  // durable; nothing there is fine
void rename_durable(const std::string& from, const std::string& to);
// The two names swap what they name, in one step. false: this file system can't.
bool exchange_durable(const std::string& a, const std::string& b);
// `link` names `target` (as text, relative to the link's folder) from now on, in one step; it replaces an
// older link.
void symlink_durable(const std::string& target, const std::string& link);
void sync_file(const std::string& path);
void sync_dir(const std::string& path);  // the folder's names are on the disk

}  // namespace redco
