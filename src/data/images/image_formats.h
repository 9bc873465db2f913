// The formats of image files: the table that decode_image, folders, archives and tables share.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/images/image.h"

namespace redco {

struct ImageFormat {
  std::string_view name;
  std::vector<std::string_view> endings;  // of file names, in lower case: ".png"
  std::vector<std::string_view> begins;   // first bytes, one of them in each file
  bool (*is)(std::string_view bytes);
  Image (*decode)(std::string_view bytes, const std::string& where);
};
const std::vector<ImageFormat>& image_formats();
// "PNG, JPEG, GIF, WebP"
std::string image_format_names();

bool is_png(std::string_view bytes);
Image decode_png(std::string_view bytes, const std::string& where);
bool is_jpeg(std::string_view bytes);
Image decode_jpeg(std::string_view bytes, const std::string& where);
bool is_gif(std::string_view bytes);
Image decode_gif(std::string_view bytes, const std::string& where);
bool is_webp(std::string_view bytes);
Image decode_webp(std::string_view bytes, const std::string& where);

// ContentsError for an image without pixels or with more than kMaxPixels.
void check_size(const Image& image, const std::string& where);

}  // namespace redco
