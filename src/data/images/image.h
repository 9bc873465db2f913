// Decoding of image files (PNG, JPEG, GIF, WebP) to bytes, in the channels and the size of the model's input.
// Pixels are equal to Pillow's for the same file, resizing included. All functions are thread-safe.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/types.h"

namespace redco {

struct Image {
  i64 height = 0, width = 0, channels = 0;  // channels: 1 = grey, 3 = red, green, blue
  std::vector<std::uint8_t> pixels;         // [height][width][channels]
};

// Maximum number of pixels. Without it, a file of a few bytes could allocate all memory.
inline constexpr i64 kMaxPixels = i64{64} << 20;

// Decodes a file of image_formats() (data/images/image_formats.h), of GIF and WebP the first frame, to 8 bits
// per channel, grey or colour as stored. Palettes and 1, 2 or 4 bits are expanded, 16 bits are reduced to the
// upper 8, CMYK becomes RGB, transparency is dropped. The Exif orientation is applied. ContentsError that
// begins with `where` for other formats, damage, truncated files and images of more than kMaxPixels. Wrong
// bytes inside a JPEG's pixel data that usual readers tolerate are tolerated here too.
Image decode_image(std::string_view bytes, const std::string& where);

// A PNG file of 8 bits per channel. Equal images give equal bytes. REQUIRES: channels is 1 or 3.
std::string encode_png(const Image& image);
// The PNG file as a data URI, "data:image/png;base64,...": an image inside of a JSON text. If a member of an
// answer of Pipeline::predict() is one, `redco predict` writes the file and `redco report` shows the image.
std::string png_data_uri(const Image& image);
// The bytes of the PNG file; nullopt for any other text.
std::optional<std::string> png_of_data_uri(std::string_view text);

// Converts the image to 1 channel (luma, ITU-R 601-2) or 3. REQUIRES: channels is 1 or 3.
Image to_channels(const Image& image, i64 channels);

// Filters, with Pillow's numbers ("resample" of preprocessor_config.json).
enum class Resample : std::uint8_t {
  nearest = 0,
  lanczos = 1,
  bilinear = 2,
  bicubic = 3,
  box = 4,
  hamming = 5
};

// Resizes the image. Each new pixel is a weighted mean of the pixels under its filter. If the image shrinks,
// the filter grows by the same factor, so that no line is lost. Rows first, rounded to bytes in between.
// Equal to Pillow's Image.resize bit for bit. REQUIRES: sizes of 1 to kMaxPixels in total.
Image resize_image(const Image& image, i64 height, i64 width, Resample how = Resample::bilinear);

// The central part of `height` x `width`; a smaller image is padded with zeros.
Image center_crop(const Image& image, i64 height, i64 width);

}  // namespace redco
