#include "data/images/image_source.h"

#include "base/words.h"
#include "data/builtin/drawn_images.h"

namespace redco {

std::string ImageSource::where(const std::string& name, const std::string& folder) const {
  return is_drawn(name) ? excerpt(name) : files_.where(name, folder);
}

Image ImageSource::read(const std::string& name, const std::string& folder) const {
  if (is_drawn(name)) return draw_image(name, "[data]");
  return decode_image(files_.read(name, folder), "[data] " + where(name, folder));
}

}  // namespace redco
