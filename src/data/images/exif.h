// The orientation that a camera stores with an image.
#pragma once

#include <string_view>

#include "data/images/image.h"

namespace redco {

// The orientation, 1 to 8, in an Exif block (a TIFF header and its first directory, maybe after "Exif" and
// two zero bytes); 1 if it has none or is
// damaged, as Pillow reads it.
int exif_orientation(std::string_view tiff);

// The image as it was taken (Pillow's exif_transpose). Other numbers than 2 to 8 change nothing.
Image upright(Image image, int orientation);

}  // namespace redco
