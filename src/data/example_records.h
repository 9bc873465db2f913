// What an index of examples is made from: the records of its files, one after the other.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/gzip.h"

namespace redco {

struct ExampleRecord {
  u64 line = 0;                       // where it begins in its file, from 1
  u32 file = 0;                       // of the files' list
  std::string text;                   // its line; of a pair the source
  std::optional<std::string> target;  // of a pair
  bool blank = false;                 // a line with nothing in it: no record
  std::string bad;                    // why it is none; "": nothing known against it
};

class ExampleRecords {
 public:
  virtual ~ExampleRecords() = default;
  // File by file; false at the end. Errors are the readers'.
  virtual bool next(ExampleRecord& r) = 0;
  virtual u64 stored_position() const = 0;  // bytes that have been read, of all files
};

// Lines as they are, blank ones marked.
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
