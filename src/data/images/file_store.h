// Files by name in a folder or a .zip, e.g. images. An archive is never unpacked, so its names cannot reach
// files outside. Names are used exactly as in the archive.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/types.h"

namespace redco {

class FileStore {
 public:
  // Maximum size of one file.
  static constexpr i64 kMaxFile = i64{256} << 20;

  // path: a folder or a zip archive. UsageError if nothing exists there, ContentsError for another file or a
  // broken archive.
  static FileStore open(const std::string& path);
  FileStore(FileStore&&) noexcept;
  FileStore& operator=(FileStore&&) noexcept;
  ~FileStore();

  const std::string& path() const { return path_; }
  bool is_zip() const { return zip_ != nullptr; }
  // All files, recursively, sorted by bytes, with '/' between folders. Files of macOS and version control
  // (names that begin with a dot, __MACOSX) are omitted. Links are followed.
  std::vector<std::string> names() const;
  bool has(const std::string& name) const;
  // The file's bytes. ContentsError for damage, a file that is too large, or an unknown name. Thread-safe;
  // reads from an archive are serialized.
  std::string read(const std::string& name) const;
  // The file in messages: "folder/a.png", "images.zip:a.png".
  std::string where(const std::string& name) const;

 private:
  struct Zip;
  FileStore(std::string path, std::unique_ptr<Zip> zip);

  std::string path_;
  std::unique_ptr<Zip> zip_;
};

}  // namespace redco
