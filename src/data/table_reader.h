// Tables as text: TSV and CSV files, plain or gzipped.
//
// tsv: a line is a row, a tab ends a cell; quotes mean nothing. csv: RFC 4180: commas end cells, a cell may
// stand in quotes, where a doubled one is a quote and line breaks are text. Blank lines are no rows. Bytes
// that are no UTF-8 are left as they are; a byte order mark before the first row is passed over.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/gzip.h"

namespace redco {

class TableReader {
 public:
  enum class Kind : std::uint8_t { tsv, csv };
  static constexpr std::size_t kMaxColumns = 1 << 16;
  // "tsv" or "csv"
  static Kind kind_of(std::string_view format) { return format == "csv" ? Kind::csv : Kind::tsv; }

  // Errors are LineReader's.
  TableReader(const std::string& path, Kind kind) : lines_(path), kind_(kind), path_(path) {}

  // The next row's cells; false at the end. ContentsError with file and line for a quote that no quote ends,
  // and for text behind a cell's closing quote, and for more than kMaxColumns cells.
  bool next(std::vector<std::string>& cells);
  i64 line_number() const { return line_; }  // where the row began, from 1
  std::string where() const;                 // "file.csv:12"
  u64 stored_position() const { return lines_.stored_position(); }

 private:
  void check_count(const std::vector<std::string>& cells) const;
  bool next_line();
  void cut_csv(std::vector<std::string>& cells);

  LineReader lines_;
  Kind kind_;
  std::string path_, text_;
  i64 line_ = 0;
};

// Which cell of a row a setting means: the column of that name in `header`, or, of a table without one
// (null), a number from 1. `key` is the setting's name. UsageError where there is no such column, or two.
std::size_t find_column(const std::string& name, const std::vector<std::string>* header,
                        const std::string& key, const std::string& where);
// Whether `name` is a column's number.
bool is_column_number(std::string_view name);

}  // namespace redco
