// The decoders behind decode_image (data/images/image.h), one per format.
#pragma once

#include "data/images/image.h"

namespace redco {

bool is_png(std::string_view bytes);
Image decode_png(std::string_view bytes, const std::string& where);
bool is_jpeg(std::string_view bytes);
Image decode_jpeg(std::string_view bytes, const std::string& where);
bool is_gif(std::string_view bytes);
Image decode_gif(std::string_view bytes, const std::string& where);

// ContentsError for an image without pixels or with more than kMaxPixels.
void check_size(const Image& image, const std::string& where);

}  // namespace redco
