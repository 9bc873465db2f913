// Images by the names in the lines of data files.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "data/images/file_store.h"
#include "data/images/image.h"

namespace redco {

class ImageSource {
 public:
  // images: a folder or .zip with all names (data.images). None: names are paths relative to the folder of
  // the file with the line.
  explicit ImageSource(const std::optional<std::string>& images);

  // Reads the image called `name` in a line of a file in `folder`; "drawn:..." are drawn
  // (data/builtin/drawn_images.h), images in base64 are decoded (image_text.h), and images in tar archives of
  // `folder` are read from their places (tar_members.h). ContentsError with the
  // image's path if it is missing or broken. Thread-safe.
  Image read(const std::string& name, const std::string& folder) const;
  // The image's name in messages.
  std::string where(const std::string& name, const std::string& folder) const;

 private:
  std::optional<FileStore> store_;
};

}  // namespace redco
