// The rows of tables: TSV, whose fields are what stands between tabs, and CSV (RFC 4180), whose fields may
// stand in quotes, then hold commas, line breaks and, doubled, quotes. Plain or gzipped.
#pragma once

#include <string>
#include <vector>

#include "base/gzip.h"

namespace redco {

enum class Delimiter : char { tab = '\t', comma = ',' };

class DelimitedReader {
 public:
  // UsageError for a missing file. A byte order mark at the file's begin is no part of its first field.
  DelimitedReader(const std::string& path, Delimiter delimiter)
      : lines_(path), delimiter_(static_cast<char>(delimiter)), quotes_(delimiter == Delimiter::comma) {}

  // The next row; false at the end. Empty lines are no rows. ContentsErrors are the reason alone, without
  // where(): a quote inside a field that doesn't begin with one, text behind a closing quote, a quote that
  // nobody closes (LineReader::kMaxLine bytes of such a row). The next call goes on behind the row.
  bool next(std::vector<std::string>& fields);
  // The line on which the row that was read last begins, from 1; "file.csv:12".
  i64 line_number() const { return row_; }
  std::string where() const;
  u64 stored_position() const { return lines_.stored_position(); }

 private:
  void split_quoted(std::string& line, std::vector<std::string>& fields);

  LineReader lines_;
  char delimiter_;
  bool quotes_;
  i64 row_ = 0;
};

}  // namespace redco
