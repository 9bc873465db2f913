// The encodings of Parquet's levels and values. Bytes that do not hold what is asked are ContentsErrors
// without the place.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/types.h"
#include "data/parquet/schema.h"

namespace redco {

// n numbers of `width` bits (0 to 32): runs and bit-packed groups. `used`: bytes read.
std::vector<u32> decode_runs(std::string_view bytes, int width, std::size_t n, std::size_t* used = nullptr);

// At most n numbers of DELTA_BINARY_PACKED; their count is in the bytes.
std::vector<i64> decode_deltas(std::string_view bytes, std::size_t n, std::size_t* used = nullptr);

// n values of the leaf in an encoding other than a dictionary's. UsageError for an unknown encoding.
std::vector<nlohmann::ordered_json> decode_values(const ParquetNode& leaf, i64 encoding,
                                                  std::string_view bytes, std::size_t n);

}  // namespace redco
