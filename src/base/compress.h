// zlib compression of a string in memory.
#pragma once

#include <string>
#include <string_view>

#include "base/types.h"

namespace redco {

// Compresses to the zlib format at the highest level.
std::string compress(std::string_view bytes);
// Decompresses the output of compress(). Throws ContentsError, whose message starts with `where`, if the
// bytes are damaged or unpack to more than max_bytes.
std::string decompress(std::string_view bytes, i64 max_bytes, const std::string& where);

}  // namespace redco
