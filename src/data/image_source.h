// Images by the names that lines of data give them.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "data/file_store.h"
#include "data/image.h"

namespace redco {

class ImageSource {
 public:
  // images: a folder or .zip that all names are in (data.images); none: names are paths, from the folder of
  // the file whose line has them.
  explicit ImageSource(const std::optional<std::string>& images);

  // The image called `name` by a line of a file in `folder`; "drawn:..." are drawn (data/drawn_images.h).
  // ContentsError with the image's path for one that isn't there or is broken. May be called from several
  // threads at once.
  Image read(const std::string& name, const std::string& folder) const;
  // The image in messages.
  std::string where(const std::string& name, const std::string& folder) const;

 private:
  std::optional<FileStore> store_;
};

}  // namespace redco
