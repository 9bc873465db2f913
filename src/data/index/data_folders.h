// The data files in a folder.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/types.h"

namespace redco {

struct FolderFiles {
  std::vector<std::string> files;  // sorted by name
  std::string format;              // of all files; of the first one if they differ
  std::string other;               // a file of another format; "" if there is none
  i64 skipped = 0;                 // files of unknown format, without hidden ones
  std::string image;               // an image among them; "" if there is none
  bool has_folders = false;
};

// The files directly in `folder` whose names tell a format (format_by_name), or only those of `format`.
// Hidden files and folders are skipped. Symbolic links to files count as files.
FolderFiles files_of_folder(const std::string& folder, const std::optional<std::string>& format);

}  // namespace redco
