// The compression codecs of Parquet's pages.
#pragma once

#include <string>
#include <string_view>

#include "base/types.h"

namespace redco {

// Unpacks to exactly `size` bytes. codec: Parquet's number of it. ContentsError, without the place, for
// damaged data; UsageError for a codec that redco does not read: LZO, Brotli, LZ4.
std::string unpack_parquet(i64 codec, std::string_view packed, std::size_t size);

// Snappy's block format. ContentsError as above.
std::string unpack_snappy(std::string_view packed, std::size_t size);

}  // namespace redco
