// The rows of an Arrow file, each as the text of a JSON object {"column": value, ...}, as ParquetRows gives
// them. Read are IPC streams, which the library datasets writes (save_to_disk, its cache), and IPC files
// (Feather), uncompressed or with zstd; a UsageError names anything else. Memory: one record batch, and the
// dictionaries. Source: https://arrow.apache.org/docs/format/Columnar.html
#pragma once

#include <memory>
#include <string>

#include "base/types.h"

namespace redco {

class ArrowRows {
 public:
  // UsageError: a missing file. ContentsError: no Arrow file.
  explicit ArrowRows(const std::string& path);
  ArrowRows(ArrowRows&&) noexcept;
  ~ArrowRows();

  // The next row; false at the end. ContentsError with file and row for damaged data.
  bool next(std::string& json);
  i64 line_number() const;    // of the last row, from 1
  std::string where() const;  // "data.arrow:12"
  u64 stored_position() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace redco
