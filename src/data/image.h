// Images as they lie in files: PNG and JPEG to bytes, in the channels and the size that a model reads. Pixels
// are those that Pillow makes of the same file, resizing included. All functions may be called from several
// threads at once.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/types.h"

namespace redco {

struct Image {
  i64 height = 0, width = 0, channels = 0;  // channels: 1 = grey, 3 = red, green, blue
  std::vector<std::uint8_t> pixels;         // [height][width][channels]
};

// No image has more pixels: a few bytes could otherwise ask for all memory.
inline constexpr i64 kMaxPixels = i64{64} << 20;

// The image of a PNG or JPEG file's bytes, 8 bits a channel, grey or in colours as it is stored: palettes and
// 1, 2 or 4 bits are unpacked, of 16 bits the upper 8 kept, CMYK becomes RGB, and what says how transparent a
// pixel is is left out. Orientations in Exif are not followed. ContentsError that begins with `where` for
// other formats, damage, files cut short and images of more than kMaxPixels; wrong bytes inside of a JPEG's
// pixels that its readers pass over are passed over here, too.
Image decode_image(std::string_view bytes, const std::string& where);

// The image in 1 channel (luma, ITU-R 601-2) or 3. REQUIRES: channels is 1 or 3.
Image to_channels(const Image& image, i64 channels);

// How pixels are weighed, with Pillow's numbers ("resample" of preprocessor_config.json).
enum class Resample : std::uint8_t {
  nearest = 0,
  lanczos = 1,
  bilinear = 2,
  bicubic = 3,
  box = 4,
  hamming = 5
};

// The image in another size: each new pixel is a weighted mean of those under its filter, which grows with
// the factor where the image shrinks (so that no line is lost), rows first, rounded to bytes in between.
// Equal to Pillow's Image.resize bit for bit. REQUIRES: sizes of 1 to kMaxPixels in all.
Image resize_image(const Image& image, i64 height, i64 width, Resample how = Resample::bilinear);

// The part of `height` x `width` in the middle; where the image is smaller, zeros around it.
Image center_crop(const Image& image, i64 height, i64 width);

}  // namespace redco
