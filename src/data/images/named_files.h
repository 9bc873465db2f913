// Files of images or recordings by the names in the lines of data files.
#pragma once

#include <optional>
#include <string>

#include "data/images/file_store.h"

namespace redco {

class NamedFiles {
 public:
  // folder: a folder or .zip with all names. None: names are paths relative to the folder of the file with
  // the line. what: "image"; setting: the setting that gives `folder`.
  NamedFiles(const std::optional<std::string>& folder, const char* what, const char* setting);

  // The file called `name` in a line of a file in `folder`. Data URIs and images in base64 are decoded
  // (image_text.h), and files in tar archives of `folder` are read from their places (tar_members.h).
  // ContentsError with the file's path if it is missing or too large. Thread-safe.
  std::string read(const std::string& name, const std::string& folder) const;
  // The file's name in messages.
  std::string where(const std::string& name, const std::string& folder) const;

 private:
  std::optional<FileStore> store_;
  const char *what_, *setting_;
};

}  // namespace redco
