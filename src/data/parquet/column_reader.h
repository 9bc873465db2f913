// The values of one column chunk of a Parquet file, page by page, with their levels.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "data/parquet/schema.h"

namespace redco {

class ParquetColumn {
 public:
  using Json = nlohmann::ordered_json;
  // file and leaf must outlive the object. Errors of reading are ContentsErrors without the place, and
  // UsageErrors for encodings and codecs that redco does not read.
  ParquetColumn(const ReadFile& file, const ParquetNode& leaf, const ParquetChunk& chunk);

  // The levels of the next value; false at the end of the chunk.
  bool peek(int& definition, int& repetition);
  // Moves past the next value, and returns it: null unless it is there at the leaf's definition level.
  Json take();

 private:
  struct Page;
  void load_page();
  void read_values(i64 encoding, std::string_view bytes, std::size_t n);
  void read_dictionary(std::string_view bytes, std::size_t n, i64 encoding);

  const ReadFile& file_;
  const ParquetNode& leaf_;
  ParquetChunk chunk_;
  i64 at_ = 0;      // bytes of the chunk that were read
  i64 n_read_ = 0;  // values of the pages that were read
  std::vector<Json> dictionary_, values_;
  std::vector<u32> indices_;  // into the dictionary, in place of values_
  bool indexed_ = false;
  std::vector<std::uint8_t> definitions_, repetitions_;  // empty: all 0
  std::size_t n_levels_ = 0, level_ = 0, value_ = 0;     // of the page
};

}  // namespace redco
