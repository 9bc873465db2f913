#include "data/images/image_folder.h"

#include <algorithm>
#include <set>

#include "base/ascii.h"
#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/words.h"
#include "data/images/image_formats.h"
#include "data/index/data_folders.h"

namespace redco {

bool is_image_name(const std::string& name) {
  const std::string end = ascii_lower(name.substr(name.size() - std::min<size_t>(name.size(), 5)));
  return std::ranges::any_of(image_formats(), [&](const ImageFormat& f) {
    return std::ranges::any_of(f.endings, [&](std::string_view ending) { return end.ends_with(ending); });
  });
}

namespace {

// "a/b/" of "a/b/c.png"; "" of "c.png".
std::string folder_of(const std::string& name) { return name.substr(0, name.rfind('/') + 1); }

// Length of the single top folder ("root/") that contains all names, if each still has a folder below it;
// else 0.
size_t common_root(const std::vector<std::string>& names) {
  const size_t n = names.front().find('/') + 1;
  for (const std::string& name : names)
    if (n == 0 || name.compare(0, n, names.front(), 0, n) != 0 || name.find('/', n) == std::string::npos)
      return 0;
  return n;
}

// Folders of splits are not classes. (In a folder, the data of the job are then one of them.)
void check_splits(const std::vector<std::string>& names, size_t root, const std::string& path) {
  std::set<std::string> tops;
  for (const std::string& name : names)
    if (const size_t end = name.find('/', root); end != std::string::npos)
      tops.insert(name.substr(root, end - root));
  if (tops.size() > 1 && std::all_of(tops.begin(), tops.end(), is_split_name))
    throw UsageError(
        "[data] {}: its folders are splits, such as {}, expected a folder per class. Unpack the archive, and name "
        "the folder of one split",
        path, excerpt(*tops.begin()));
}

}  // namespace

ImageFolder ImageFolder::open(const std::string& path, bool without_classes) {
  ImageFolder f(FileStore::open(path));
  std::vector<std::string> names = f.store_.names();
  const size_t all = names.size();
  std::string other;
  std::erase_if(names, [&](const std::string& name) {
    if (is_image_name(name)) return false;
    if (other.empty()) other = name;
    return true;
  });
  if (!other.empty())
    f.ignored_ =
        fmt::format("; {}: {} ignored, such as {}", path,
                    counted(static_cast<i64>(all - names.size()), "other file"), f.store_.where(other));
  if (names.empty())
    throw ContentsError("[data] {}: no image ({}) in its {} files", path, image_format_names(), all);
  const size_t root = common_root(names);
  if (!without_classes) check_splits(names, root, path);
  // By class, then by name.
  std::vector<std::pair<std::string, std::string>> sorted;
  for (std::string& name : names) {
    std::string folder;
    if (!without_classes) {
      folder = folder_of(name).substr(root);
      if (folder.empty())
        throw ContentsError("[data] {}: the image is not in the folder of a class, expected {}/CLASS/{}",
                            f.store_.where(name), path, file_name(name));
      folder.pop_back();
    }
    sorted.emplace_back(std::move(folder), std::move(name));
  }
  std::sort(sorted.begin(), sorted.end());
  for (auto& [folder, name] : sorted) {
    if (f.classes_.empty() || f.classes_.back() != folder) {
      f.classes_.push_back(folder);
      f.begins_.push_back(static_cast<i64>(f.files_.size()));
    }
    f.files_.push_back({std::move(name), static_cast<i32>(f.classes_.size()) - 1});
  }
  f.begins_.push_back(static_cast<i64>(f.files_.size()));
  return f;
}

std::string ImageFolder::fingerprint() const {
  Hasher h;
  for (const ImageFile& file : files_) {
    const std::string line = file.name + "\n" + classes_[static_cast<size_t>(file.label)] + "\n";
    h.update(line.data(), line.size());
  }
  return hex64(h.digest64());
}

}  // namespace redco
