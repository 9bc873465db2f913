// Tables as text: TSV and CSV files, plain or compressed.
//
// tsv: one row per line, tabs between cells; quotes have no meaning. csv: RFC 4180: commas between cells; a
// cell may be quoted and then contain line breaks and doubled quotes. A csv file whose first line has no
// comma outside of quotes, but semicolons or tabs, has these between its cells; the log mentions it. Blank
// lines are skipped. Bytes that are not UTF-8 are kept.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/input_file.h"

namespace redco {

class TableReader {
 public:
  enum class Kind : std::uint8_t { tsv, csv };
  static constexpr std::size_t kMaxColumns = 1 << 16;
  // "tsv" or "csv"
  static Kind kind_of(std::string_view format) { return format == "csv" ? Kind::csv : Kind::tsv; }

  // Errors as LineReader.
  TableReader(const std::string& path, Kind kind) : lines_(path), kind_(kind), path_(path) {}

  // The next row's cells; false at the end. ContentsError with file and line for an unclosed quote, for text
  // after a closing quote, and for more than kMaxColumns cells.
  bool next(std::vector<std::string>& cells);
  i64 line_number() const { return line_; }  // first line of the row, from 1
  std::string where() const;                 // "file.csv:12"
  u64 stored_position() const { return lines_.stored_position(); }

 private:
  void check_count(const std::vector<std::string>& cells) const;
  bool next_line();
  void choose_separator();
  void cut_csv(std::vector<std::string>& cells);

  LineReader lines_;
  Kind kind_;
  char separator_ = 0;  // of csv; 0 before the first line
  std::string path_, text_;
  i64 line_ = 0;
};

// The index of a setting's column: by name in `header`, or, without a header (null), by number from 1. `key`
// is the setting's name. UsageError: no column of this name, or several.
std::size_t find_column(const std::string& name, const std::vector<std::string>* header,
                        const std::string& key, const std::string& where);
// The number in a cell, which may begin with a plus sign and have spaces around it.
std::optional<double> number_of_cell(std::string_view cell);
// Whether `name` is a column number.
bool is_column_number(std::string_view name);

}  // namespace redco
