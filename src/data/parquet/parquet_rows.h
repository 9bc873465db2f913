// The rows of a Parquet file, each as the text of a JSON object {"column": value, ...}: structs are objects,
// lists arrays, maps with texts as keys objects. Nulls, NaN and binary data that are not UTF-8 are null;
// decimals are numbers, time stamps the integers that are stored.
//
// Read are nested columns, pages of versions 1 and 2, all encodings that pyarrow writes, and the codecs
// snappy, gzip and zstd; a UsageError names anything else. Memory: one page of each column.
#pragma once

#include <memory>
#include <string>

#include "base/types.h"

namespace redco {

class ParquetRows {
 public:
  // UsageError: a missing file. ContentsError: no Parquet file.
  explicit ParquetRows(const std::string& path);
  ParquetRows(ParquetRows&&) noexcept;
  ~ParquetRows();

  // The next row; false at the end. ContentsError with file and row for damaged data.
  bool next(std::string& json);
  i64 line_number() const;    // of the last row, from 1
  std::string where() const;  // "data.parquet:12"
  u64 stored_position() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace redco
