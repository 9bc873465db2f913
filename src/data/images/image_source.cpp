#include "data/images/image_source.h"

#include "base/error.h"
#include "base/file.h"
#include "base/words.h"
#include "data/builtin/drawn_images.h"
#include "data/images/image_text.h"
#include "data/images/tar_members.h"

namespace redco {

namespace {
constexpr std::size_t kLongestName = 4096;  // longer texts are images, not names
}

ImageSource::ImageSource(const std::optional<std::string>& images) {
  if (images) store_.emplace(FileStore::open(*images));
}

std::string ImageSource::where(const std::string& name, const std::string& folder) const {
  if (is_drawn(name) || name.starts_with("data:") || name.size() > kLongestName) return excerpt(name);
  if (const auto place = TarPlace::of(name))
    return join_path(folder, place->archive) + ":" + excerpt(place->name);
  if (store_) return store_->where(name);
  return name.starts_with('/') ? name : join_path(folder, name);
}

Image ImageSource::read(const std::string& name, const std::string& folder) const {
  const std::string at = where(name, folder);
  if (is_drawn(name)) return draw_image(name, "[data]");
  if (const auto place = TarPlace::of(name)) {
    if (place->size > FileStore::kMaxFile)
      throw ContentsError("[data] {}: {} are more than the maximum of {} per file", at,
                          human_bytes(static_cast<u64>(place->size)), human_bytes(FileStore::kMaxFile));
    const ReadFile archive = ReadFile::open(join_path(folder, place->archive));
    if (place->offset > archive.size() - place->size)
      throw ContentsError("[data] {}: the archive has become shorter", at);
    std::string bytes(static_cast<std::size_t>(place->size), '\0');
    archive.pread_exact(place->offset, bytes.data(), place->size);
    return decode_image(bytes, "[data] " + at);
  }
  if (const auto file = image_file_in(name, "[data] " + at)) return decode_image(*file, "[data] " + at);
  if (store_) return decode_image(store_->read(name), "[data] " + at);
  const auto info = file_info(at);
  if (!info || info->kind != FileInfo::file)
    throw ContentsError(
        "[data] {}: the image file does not exist{}", at,
        name.find(".zip") != std::string::npos ? "; set data.images to the archive of the images" : "");
  return decode_image(read_file(at, FileStore::kMaxFile), "[data] " + at);
}

}  // namespace redco
