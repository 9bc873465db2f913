#include "data/images/image.h"

#include "base/error.h"
#include "base/words.h"
#include "data/images/image_formats.h"

namespace redco {

void check_size(const Image& image, const std::string& where) {
  if (image.height < 1 || image.width < 1 || image.height > kMaxPixels / image.width)
    throw ContentsError("{}: an image of {} x {} pixels; expected at least 1 and at most {} in all", where,
                        image.height, image.width, kMaxPixels);
}

Image decode_image(std::string_view bytes, const std::string& where) {
  if (is_png(bytes)) return decode_png(bytes, where);
  if (is_jpeg(bytes)) return decode_jpeg(bytes, where);
  if (is_gif(bytes)) return decode_gif(bytes, where);
  if (bytes.empty()) throw ContentsError("{}: the file is empty; expected a PNG, JPEG or GIF", where);
  throw ContentsError("{}: neither PNG, JPEG nor GIF: it begins with \"{}\"", where,
                      excerpt(bytes.substr(0, 16), 16));
}

}  // namespace redco
