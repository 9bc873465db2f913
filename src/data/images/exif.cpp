#include "data/images/exif.h"

#include <algorithm>

namespace redco {

namespace {

constexpr u32 kOrientationTag = 0x0112, kShort = 3;
constexpr std::string_view kExifHead{"Exif\0\0", 6};

// Numbers of the block's byte order; 0 outside of it.
class TiffBytes {
 public:
  explicit TiffBytes(std::string_view b) : bytes_(b), big_(b.starts_with("MM")) {}
  u32 number(std::size_t at, std::size_t n) const {
    if (at > bytes_.size() || n > bytes_.size() - at) return 0;
    u32 v = 0;
    for (std::size_t i = 0; i < n; ++i)
      v = v << 8 | static_cast<std::uint8_t>(bytes_[at + (big_ ? i : n - 1 - i)]);
    return v;
  }

 private:
  std::string_view bytes_;
  bool big_;
};

}  // namespace

int exif_orientation(std::string_view tiff) {
  if (tiff.starts_with(kExifHead)) tiff.remove_prefix(kExifHead.size());
  const TiffBytes in(tiff);
  if ((!tiff.starts_with("II") && !tiff.starts_with("MM")) || in.number(2, 2) != 42) return 1;
  const std::size_t directory = in.number(4, 4);
  const u32 n = in.number(directory, 2);
  for (u32 i = 0; i < n; ++i) {
    const std::size_t entry = directory + 2 + 12 * std::size_t{i};
    if (in.number(entry, 2) != kOrientationTag) continue;
    const u32 v = in.number(entry + 2, 2) == kShort ? in.number(entry + 8, 2) : 1;
    return v >= 1 && v <= 8 ? static_cast<int>(v) : 1;
  }
  return 1;
}

Image upright(Image image, int orientation) {
  if (orientation < 2 || orientation > 8) return image;
  const i64 h = image.height, w = image.width;
  Image out{orientation >= 5 ? w : h, orientation >= 5 ? h : w, image.channels, {}};
  out.pixels.resize(image.pixels.size());
  auto to = out.pixels.begin();
  for (i64 y = 0; y < out.height; ++y)
    for (i64 x = 0; x < out.width; ++x) {
      // The row and the column that the pixel comes from.
      i64 row = orientation >= 5 ? x : y, column = orientation >= 5 ? y : x;
      if (orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7) row = h - 1 - row;
      if (orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8)
        column = w - 1 - column;
      to = std::copy_n(image.pixels.begin() + (row * w + column) * image.channels, image.channels, to);
    }
  return out;
}

}  // namespace redco
