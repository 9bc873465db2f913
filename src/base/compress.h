// zlib compression of a text in memory.
#pragma once

#include <string>
#include <string_view>

#include "base/types.h"

namespace redco {

// zlib's format, best compression.
std::string compress(std::string_view bytes);
// What compress() made. ContentsError, with `where` in front: the bytes are damaged, or unpack to more than
// max_bytes.
std::string decompress(std::string_view bytes, i64 max_bytes, const std::string& where);

}  // namespace redco
