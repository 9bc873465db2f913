// IDX files, the format of MNIST: images and labels, plain or compressed.
#pragma once

#include <string>
#include <vector>

#include "data/images/image.h"

namespace redco {

// Images of one size, one after another.
struct IdxImages {
  i64 count = 0, height = 0, width = 0, channels = 1;
  std::vector<std::uint8_t> pixels;  // [count][height][width][channels]

  Image at(i64 i) const;
};

// Bytes in 3 dimensions, or in 4 dimensions whose last is 1 or 3 channels. ContentsError for another header,
// for fewer or more bytes than the header gives, and for impossible sizes: no pixels, too many.
IdxImages read_idx_images(const std::string& path);

// Integers of at most 4 bytes in 1 dimension.
std::vector<i32> read_idx_labels(const std::string& path);

}  // namespace redco
