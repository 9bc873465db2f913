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

const std::vector<ImageFormat>& image_formats() {
  static const std::vector<ImageFormat> all = {
      {"PNG", {".png"}, {"\x89PNG\r\n\x1a\n"}, is_png, decode_png},
      {"JPEG", {".jpg", ".jpeg"}, {"\xff\xd8\xff"}, is_jpeg, decode_jpeg},
      {"GIF", {".gif"}, {"GIF87a", "GIF89a"}, is_gif, decode_gif},
      {"WebP", {".webp"}, {"RIFF"}, is_webp, decode_webp}};
  return all;
}

std::string image_format_names() {
  std::string out;
  for (const ImageFormat& f : image_formats()) out += (out.empty() ? "" : ", ") + std::string(f.name);
  return out;
}

Image decode_image(std::string_view bytes, const std::string& where) {
  for (const ImageFormat& f : image_formats())
    if (f.is(bytes)) return f.decode(bytes, where);
  if (bytes.empty())
    throw ContentsError("{}: the file is empty; expected an image ({})", where, image_format_names());
  throw ContentsError("{}: not an image that redco reads ({}): it begins with \"{}\"", where,
                      image_format_names(), excerpt(bytes.substr(0, 16), 16));
}

}  // namespace redco
