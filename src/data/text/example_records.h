// The records of data files, one after another: the input of an example index.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/input_file.h"

namespace redco {

struct ExampleRecord {
  u64 line = 0;                       // first line in its file, from 1
  u32 file = 0;                       // index in the list of files
  std::string text;                   // the line; for a pair, the source
  std::optional<std::string> target;  // for a pair
  bool blank = false;                 // a blank line: no record
  std::string bad;                    // why the record is bad; "": not known to be bad
};

class ExampleRecords {
 public:
  virtual ~ExampleRecords() = default;
  // The next record, file by file; false at the end. Errors as the readers.
  virtual bool next(ExampleRecord& r) = 0;
  virtual u64 stored_position() const = 0;  // bytes read so far, of all files
};

// Lines without changes; blank lines are marked.
class LineRecords : public ExampleRecords {
 public:
  explicit LineRecords(std::vector<std::string> paths) : paths_(std::move(paths)) {}
  bool next(ExampleRecord& r) override {
    for (; file_ < paths_.size(); ++file_) {
      if (!lines_) lines_ = std::make_unique<LineReader>(paths_[file_]);
      if (lines_->next(r.text)) {
        r.line = static_cast<u64>(lines_->line_number());
        r.file = static_cast<u32>(file_);
        r.blank = r.text.find_first_not_of(" \t\r") == std::string::npos;
        return true;
      }
      done_ += lines_->stored_position();
      lines_.reset();
    }
    return false;
  }
  u64 stored_position() const override { return done_ + (lines_ ? lines_->stored_position() : 0); }

 private:
  std::vector<std::string> paths_;
  std::unique_ptr<LineReader> lines_;
  std::size_t file_ = 0;
  u64 done_ = 0;
};

}  // namespace redco
