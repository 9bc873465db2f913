// Images in a folder or a .zip (data/images/file_store.h), each in the folder of its class, or without
// classes.
#pragma once

#include <string>
#include <vector>

#include "data/images/file_store.h"

namespace redco {

struct ImageFile {
  std::string name;  // in the FileStore
  i32 label = 0;     // of its class
};

class ImageFolder {
 public:
  // All files with the endings of image_formats() (any case) below `path`; other files are ignored and
  // counted. The class is the image's folder, as a path from the root ("cat", "Greek/character01"). A single
  // top folder that contains everything, as in many archives, is not part of the class. ContentsError: no
  // images, or if an image is in no folder. without_classes: all images have the class "", in any folder.
  static ImageFolder open(const std::string& path, bool without_classes = false);

  const std::string& path() const { return store_.path(); }
  const std::vector<std::string>& classes() const { return classes_; }  // sorted by bytes
  const std::vector<ImageFile>& files() const { return files_; }        // sorted by class, then by name
  // files()[begin(c)] to files()[begin(c + 1)] belong to class c.
  i64 begin(i64 label) const { return begins_[static_cast<size_t>(label)]; }
  i64 count(i64 label) const { return begin(label + 1) - begin(label); }

  // The bytes of files()[i], and its name in messages. Thread-safe.
  std::string read(i64 i) const { return store_.read(files_[static_cast<size_t>(i)].name); }
  std::string where(i64 i) const { return store_.where(files_[static_cast<size_t>(i)].name); }
  // "; photos: 2 other files ignored, such as photos/notes.txt"; "" if there are none.
  const std::string& ignored() const { return ignored_; }
  // Of names and classes, not of pixels.
  std::string fingerprint() const;

 private:
  explicit ImageFolder(FileStore store) : store_(std::move(store)) {}

  FileStore store_;
  std::vector<std::string> classes_;
  std::vector<ImageFile> files_;
  std::vector<i64> begins_;
  std::string ignored_;
};

// Whether a name has the extension of an image.
bool is_image_name(const std::string& name);

}  // namespace redco
