// The records of data files, one after another, each as the text of a JSON object:
//   jsonl      a whole line; blank lines are skipped
//   tsv, csv   a row, {"column": "cell", ...}, with the columns' names from the first row; with data.header:
//              false they are "1", "2", ...
//   parallel   {"source": line n of a file, "target": line n of the next file}
// Files may be compressed (base/input_file.h).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "data/data_settings.h"

namespace redco {

class RecordLines {
 public:
  // Of JSONL files.
  explicit RecordLines(std::vector<std::string> files);
  // The format is data.format, or that of the files' names. UsageError: plain text; an odd number of parallel
  // files.
  RecordLines(std::vector<std::string> files, const DataSettings& s);
  RecordLines(RecordLines&&) noexcept;
  ~RecordLines();

  // The next record; false at the end. ContentsError with file and line: two parallel files with different
  // numbers of lines. UsageError: two columns of the
  // same name. Other errors as LineReader's and TableReader's.
  bool next(std::string& json);
  std::string where() const;  // of the last record, "data.csv:12"
  // Why the last record cannot be read: a row with another number of cells than the first one. "": it can.
  std::string problem() const;
  // Values are texts, numbers too.
  bool only_texts() const { return format_ != "jsonl"; }

  class Source;  // one per format

 private:
  std::string format_;
  std::unique_ptr<Source> source_;
};

}  // namespace redco
