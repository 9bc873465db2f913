#include "data/index/data_folders.h"

#include "base/file.h"
#include "data/data_settings.h"
#include "data/images/image_folder.h"

namespace redco {

FolderFiles files_of_folder(const std::string& folder, const std::optional<std::string>& format) {
  FolderFiles out;
  std::vector<std::string> json;
  for (const std::string& name : list_dir(folder)) {
    if (name.starts_with(".")) continue;
    const std::string path = join_path(folder, name);
    const auto info = file_info(path);
    if (info && info->kind == FileInfo::folder) {
      out.has_folders = true;
      continue;
    }
    const std::string one = format_by_name(name);
    if (!info || one.empty() || (format && one != *format)) {
      ++out.skipped;
      if (out.image.empty() && is_image_name(name)) out.image = path;
      continue;
    }
    if (one == "json" && !format) {
      json.push_back(path);
      continue;
    }
    if (out.files.empty()) out.format = one;
    if (one != out.format && out.other.empty()) out.other = path;
    out.files.push_back(path);
  }
  // Beside data of another format, JSON files are usually metadata.
  if (!out.files.empty() || json.empty()) {
    out.skipped += static_cast<i64>(json.size());
  } else {
    out.files = std::move(json);
    out.format = "json";
  }
  return out;
}

}  // namespace redco
