// The records of data files, one after another, each as the text of a JSON object:
//   jsonl      a whole line; blank lines are skipped. A list of texts is a row of a table without names
//   json       an element of an array, or an object of several lines (data/text/json_objects.h)
//   tsv, csv   a row, {"column": "cell", ...}, with the columns' names from the first row; with data.header:
//              false they are "1", "2", ...
//   parquet    a row, {"column": value, ...} (data/parquet)
//   webdataset a sample of a tar archive (data/text/webdataset.h)
//   conll      a sentence, {"tokens": [...], "tags": [...]} (data/text/conll_sentences.h)
//   parallel   {"source": line n of a file, "target": line n of the next file}
//   text       {"text": line}; blank lines are skipped. Only for prompts
// In JSON files, SQuAD's articles are a record per question (data/text/article_questions.h). In tables named
// metadata.*, those of image folders, "file_name" and "text" are also "image" and "caption".
// Files may be compressed (base/input_file.h), except parquet. Each file may have its own format.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "data/data_settings.h"
#include "data/text/example_records.h"

namespace redco {

class RecordLines {
 public:
  // The formats are those of the names; JSONL for names that do not tell.
  explicit RecordLines(std::vector<std::string> files);
  // The format is data.format, or those of the files' names. UsageError: plain text; an odd number of
  // parallel files; data.where or a template is malformed. Records are changed and left out as RecordMap
  // says.
  RecordLines(std::vector<std::string> files, const DataSettings& s);
  // Files of prompts, by their names: plain text has a prompt per line, unless data.format names a format of
  // records. "-": standard input, of JSON lines. All lines are prompts, whatever data.where says.
  static RecordLines of_prompts(std::vector<std::string> files, const DataSettings& s);
  RecordLines(RecordLines&&) noexcept;
  ~RecordLines();

  // The next record; false at the end. ContentsError with file and line: two parallel files with different
  // numbers of lines. UsageError: two columns of the same name. Other errors as those of the readers.
  bool next(std::string& json);
  std::string where() const;    // of the last record, "data.csv:12"
  i64 line_number() const;      // of the last record: its first line, or its row; from 1
  std::size_t file() const;     // of the last record: index of its file
  u64 stored_position() const;  // bytes read so far, of all files
  // Why the last record cannot be read: a row with another number of cells than the first one, a template's
  // column that is missing. "": it can.
  std::string problem() const;
  // Values of the last record are texts, numbers too.
  bool only_texts() const;

  class File;  // one per format

 private:
  struct State;
  RecordLines();
  std::unique_ptr<State> state_;
};

// Whether the file is the table of an image folder: metadata.csv, metadata.jsonl, metadata.parquet.
bool is_image_table(const std::string& path);

// The same records as the input of an example index.
class FileRecords : public ExampleRecords {
 public:
  FileRecords(std::vector<std::string> paths, const DataSettings& s) : lines_(std::move(paths), s) {}
  bool next(ExampleRecord& r) override;
  u64 stored_position() const override { return lines_.stored_position(); }

 private:
  RecordLines lines_;
};

}  // namespace redco
