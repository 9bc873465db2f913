// Images by the names in the lines of data files.
#pragma once

#include <optional>
#include <string>

#include "data/images/image.h"
#include "data/images/named_files.h"

namespace redco {

class ImageSource {
 public:
  // images: a folder or .zip with all names (data.images). None: names are paths relative to the folder of
  // the file with the line.
  explicit ImageSource(const std::optional<std::string>& images) : files_(images, "image", "data.images") {}

  // Reads the image called `name` in a line of a file in `folder`; "drawn:..." are drawn
  // (data/builtin/drawn_images.h), all others are files (named_files.h). ContentsError with the image's path
  // if it is missing or broken. Thread-safe.
  Image read(const std::string& name, const std::string& folder) const;
  // The image's name in messages.
  std::string where(const std::string& name, const std::string& folder) const;

 private:
  NamedFiles files_;
};

}  // namespace redco
