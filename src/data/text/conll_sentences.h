// The sentences of a CoNLL file: each line has one token and its columns, a blank line after each sentence.
//
//   EU NNP B-NP B-ORG
//   rejects VBZ B-VP O
//
// Columns are between tabs, or between runs of spaces in a file whose first line has no tab. A sentence is
// the JSON object {"tokens": [the first column], "tags": [the last column], "1": [...], "2": [...], ...} with
// all columns by number. Lines with -DOCSTART- are skipped, and so are comments in front of a sentence: lines
// that begin with "# " and have another number of columns than the words of the file.
#pragma once

#include <string>
#include <vector>

#include "base/input_file.h"

namespace redco {

class ConllSentences {
 public:
  static constexpr std::size_t kMaxWords = std::size_t{1} << 20;  // per sentence

  // Errors as LineReader.
  explicit ConllSentences(const std::string& path) : lines_(path) {}

  // The next sentence; false at the end. ContentsError with file and line for more than kMaxWords words.
  bool next(std::string& json);
  // Why the last sentence is bad: a line with another number of columns than the first word. "": it is not.
  const std::string& problem() const { return problem_; }
  i64 line_number() const { return first_line_; }  // of the sentence's first word, from 1
  std::string where() const;
  u64 stored_position() const { return lines_.stored_position(); }

 private:
  LineReader lines_;
  std::string problem_;
  i64 first_line_ = 0;
  bool tabs_ = false;
  std::size_t width_ = 0;  // columns of the first word of the file
};

}  // namespace redco
