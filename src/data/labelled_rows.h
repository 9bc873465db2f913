// Labelled examples as their files say them: what is to be classified or valued (a text, a pair of texts,
// numbers, an image's path), and its label. Rows of TSV and CSV (data/table_reader.h), lines of JSONL, plain
// or gzipped.
//
//   {"text": "...", "text_pair": "...", "label": "positive", "id": 7}
//   {"features": [0.5, -1], "label": 0.25}
//   {"image": "cats/1.png", "label": "cat"}
//
// data.fields names keys and columns: a.b is key b of the object under key a, a number is a column of a table
// without a header, from 1. Other keys and columns are passed over.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/types.h"
#include "data/data_settings.h"

namespace redco {

enum class LabelledInput : std::uint8_t { text, vector, image };

struct LabelledRow {
  i64 line = 0;  // from 1
  std::string text;
  std::optional<std::string> text_pair;
  std::string image;  // a path, from the folder of the row's file
  std::vector<float> features;
  std::vector<std::string> label;  // as they are written, one for each of data.fields.label
  std::string id;                  // as JSON; "" is none
  std::string bad;                 // "file:line: reason" where the row is no such example, all else is empty
};

class LabelledReader {
 public:
  // UsageError: a missing file, a column that there isn't, files whose names don't tell their format.
  LabelledReader(const std::string& path, const DataSettings& s, LabelledInput input);
  ~LabelledReader();
  // The next row, maybe a bad one; false at the end. ContentsError where the file can't be read on: a damaged
  // .gz, a quote without its end.
  bool next(LabelledRow& row);
  std::string where() const;  // of the row read last, "file:line"
  u64 stored_position() const;

  struct Source;  // of one format

 private:
  std::unique_ptr<Source> source_;
};

// What is done about a bad row: it is passed over, or a ContentsError that says how it could be.
void pass_over_bad(const std::string& bad, const DataSettings& s);

// An example without a label: a line of predict.input, where "prompt" may stand for the text or the path.
// ContentsErrors are the reason alone.
LabelledRow unlabelled_row(const std::string& json, const ExampleFields& fields, LabelledInput input);

// A finite number that floats hold, and nothing else but blanks around it. ContentsError names `what`.
float parse_number(std::string_view text, std::string_view what);

// The classes by their numbers.
class ClassNames {
 public:
  ClassNames() = default;
  explicit ClassNames(
      std::vector<std::string> names);  // UsageError: none, an empty one, one that comes twice
  const std::vector<std::string>& names() const { return names_; }
  i64 size() const { return static_cast<i64>(names_.size()); }
  // By name, or, where no class is called a number, by number. ContentsError that says which there are.
  i64 number_of(const std::string& label) const;
  // "3 classes: cat, dog, owl"
  std::string words() const;

 private:
  std::vector<std::string> names_;
  std::map<std::string, i64> numbers_;
  bool numbered_ = true;  // a label may be a class's number
};

// Each label once: by value where all are whole numbers, else by bytes.
std::vector<std::string> sorted_labels(std::vector<std::string> labels);
// The labels of the rows, sorted so. Rows that data.skip_bad passes over are left out. ContentsErrors are
// LabelledReader's; more than kMaxClasses are one.
inline constexpr i64 kMaxClasses = 1 << 16;
std::vector<std::string> distinct_labels(const std::vector<std::string>& files, const DataSettings& s,
                                         LabelledInput input);

}  // namespace redco
