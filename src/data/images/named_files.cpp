#include "data/images/named_files.h"

#include "base/error.h"
#include "base/file.h"
#include "base/words.h"
#include "data/images/image_text.h"
#include "data/images/tar_members.h"

namespace redco {

namespace {
constexpr std::size_t kLongestName = 4096;  // longer texts are files, not names
}

NamedFiles::NamedFiles(const std::optional<std::string>& folder, const char* what, const char* setting)
    : what_(what), setting_(setting) {
  if (folder) store_.emplace(FileStore::open(*folder));
}

std::string NamedFiles::where(const std::string& name, const std::string& folder) const {
  if (name.starts_with("data:") || name.size() > kLongestName) return excerpt(name);
  if (const auto place = TarPlace::of(name))
    return join_path(folder, place->archive) + ":" + excerpt(place->name);
  if (store_) return store_->where(name);
  return name.starts_with('/') ? name : join_path(folder, name);
}

std::string NamedFiles::read(const std::string& name, const std::string& folder) const {
  const std::string at = where(name, folder);
  if (const auto place = TarPlace::of(name)) {
    if (place->size > FileStore::kMaxFile)
      throw ContentsError("[data] {}: {} are more than the maximum of {} per file", at,
                          human_bytes(static_cast<u64>(place->size)), human_bytes(FileStore::kMaxFile));
    const ReadFile archive = ReadFile::open(join_path(folder, place->archive));
    if (place->offset > archive.size() - place->size)
      throw ContentsError("[data] {}: the archive has become shorter", at);
    std::string bytes(static_cast<std::size_t>(place->size), '\0');
    archive.pread_exact(place->offset, bytes.data(), place->size);
    return bytes;
  }
  if (auto file = media_file_in(name, "[data] " + at)) return *std::move(file);
  if (store_) return store_->read(name);
  const auto info = file_info(at);
  if (!info || info->kind != FileInfo::file)
    throw ContentsError("[data] {}: the {} file does not exist{}", at, what_,
                        name.find(".zip") != std::string::npos
                            ? fmt::format("; set {} to the archive of the {} files", setting_, what_)
                            : "");
  return read_file(at, FileStore::kMaxFile);
}

}  // namespace redco
