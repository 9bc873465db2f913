// Labelled examples in their files: an input (a text, a text pair, numbers, an image's path) and its label.
// Rows of TSV and CSV (data/labelled/table_reader.h), lines of JSONL, plain or compressed.
//
//   {"text": "...", "text_pair": "...", "label": "positive", "id": 7}
//   {"features": [0.5, -1], "label": 0.25}
//   {"image": "cats/1.png", "label": "cat"}
//
// data.fields renames keys and columns: a.b is key b of the object under key a; a number is a column, from 1,
// of a table without a header. Other keys and columns are ignored.
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
  std::string image;  // a path relative to the folder of the row's file
  std::vector<float> features;
  std::vector<std::string> label;  // verbatim, one for each of data.fields.label
  std::string id;                  // as JSON; "": none
  std::string bad;                 // "file:line: reason" if the row is bad; all else is then empty
};

class LabelledReader {
 public:
  // UsageError: a missing file, an unknown column, a file format that the names don't tell.
  LabelledReader(const std::string& path, const DataSettings& s, LabelledInput input);
  ~LabelledReader();
  // The next row, which may be bad; false at the end. ContentsError if the rest of the file is not readable:
  // a damaged compressed file, an unclosed quote.
  bool next(LabelledRow& row);
  std::string where() const;  // of the last row, "file:line"
  u64 stored_position() const;

  struct Source;  // one per format

 private:
  std::unique_ptr<Source> source_;
};

// Handles a bad row: skips it with data.skip_bad, otherwise throws a ContentsError that mentions
// data.skip_bad.
void skip_or_throw(const std::string& bad, const DataSettings& s);

// An example without a label: a line of predict.input, where "prompt" may replace the text or the path.
// ContentsErrors are the reason, without the place.
LabelledRow unlabelled_row(const std::string& json, const ExampleFields& fields, LabelledInput input);

// The classes of an example that may have several: with one key or column in data.fields.label those of its
// list, or of its cell, separated by |; with more keys the names of those that are 1. ContentsError with the
// reason: a value of several keys that is neither 0 nor 1.
std::vector<std::string> several_labels(const LabelledRow& row, const DataSettings& s);

// A finite number in the range of float, with optional blanks around it. ContentsError names `what`.
float parse_number(std::string_view text, std::string_view what);

// Class names by their indices.
class ClassNames {
 public:
  ClassNames() = default;
  explicit ClassNames(std::vector<std::string> names);  // UsageError: no names, an empty or a repeated name
  const std::vector<std::string>& names() const { return names_; }
  i64 size() const { return static_cast<i64>(names_.size()); }
  // The index of a class name, or, if no class name is a number, of a class index as text. ContentsError
  // lists the classes.
  i64 number_of(const std::string& label) const;
  // "3 classes: cat, dog, owl"
  std::string words() const;

 private:
  std::vector<std::string> names_;
  std::map<std::string, i64> numbers_;
  bool numbered_ = true;  // a label may be a class index
};

// Distinct labels: sorted by value if all are integers, else by bytes.
std::vector<std::string> sorted_labels(std::vector<std::string> labels);
// The labels of the rows, sorted like sorted_labels(). Rows skipped by data.skip_bad don't count.
// ContentsErrors as LabelledReader, and for more than kMaxClasses labels.
inline constexpr i64 kMaxClasses = 1 << 16;
// several: an example may have any number of labels (several_labels()).
std::vector<std::string> distinct_labels(const std::vector<std::string>& files, const DataSettings& s,
                                         LabelledInput input, bool several = false);

}  // namespace redco
