// Files by name, of a folder or of a .zip: what images are read from. An archive is never unpacked, so its
// names can reach nothing outside; names are as they stand in it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/types.h"

namespace redco {

class FileStore {
 public:
  // No file of it may be larger.
  static constexpr i64 kMaxFile = i64{256} << 20;

  // path: a folder, or a file that is a zip archive. UsageError where nothing is there, ContentsError for
  // another file or a broken archive.
  static FileStore open(const std::string& path);
  FileStore(FileStore&&) noexcept;
  FileStore& operator=(FileStore&&) noexcept;
  ~FileStore();

  const std::string& path() const { return path_; }
  bool is_zip() const { return zip_ != nullptr; }
  // All files below, sorted by bytes, with '/' between folders; what macOS and version control leave behind
  // (names that begin with a dot, __MACOSX) is left out. Links are followed.
  std::vector<std::string> names() const;
  bool has(const std::string& name) const;
  // The file's bytes. ContentsError for damage, too large a file or a name that isn't there. May be called
  // from several threads at once (those of an archive wait for one another).
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
