// Images in classes: each in the folder of its class, in a folder or a .zip (data/file_store.h).
#pragma once

#include <string>
#include <vector>

#include "data/file_store.h"

namespace redco {

struct ImageFile {
  std::string name;  // in the store
  i32 label = 0;     // of its class
};

class ImageFolder {
 public:
  // Every *.png, *.jpg and *.jpeg (small or capital letters) below `path`; other files are passed over. Its
  // class is the folder that holds it, as a path from the root ("cat", "Greek/character01"); one folder that
  // holds everything is no part of it, as archives have it. ContentsError where there is no image, or one
  // that lies in no folder.
  static ImageFolder open(const std::string& path);

  const std::string& path() const { return store_.path(); }
  const std::vector<std::string>& classes() const { return classes_; }  // sorted by bytes
  const std::vector<ImageFile>& files() const { return files_; }        // sorted by class, then by name
  // files()[begin(c)] to files()[begin(c + 1)] are those of class c.
  i64 begin(i64 label) const { return begins_[static_cast<size_t>(label)]; }
  i64 count(i64 label) const { return begin(label + 1) - begin(label); }

  // The bytes of files()[i], and its name in messages. May be called from several threads at once.
  std::string read(i64 i) const { return store_.read(files_[static_cast<size_t>(i)].name); }
  std::string where(i64 i) const { return store_.where(files_[static_cast<size_t>(i)].name); }
  // Of names and classes, not of pixels.
  std::string fingerprint() const;

 private:
  explicit ImageFolder(FileStore store) : store_(std::move(store)) {}

  FileStore store_;
  std::vector<std::string> classes_;
  std::vector<ImageFile> files_;
  std::vector<i64> begins_;
};

// Whether a name ends like an image's.
bool is_image_name(const std::string& name);

}  // namespace redco
