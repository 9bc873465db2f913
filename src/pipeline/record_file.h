// The index of records: their examples in one file.
#pragma once

#include <string>

#include "base/file.h"
#include "base/hash.h"
#include "data/index/block_table.h"
#include "pipeline/example.h"

namespace redco {

// The file: RecordFileHeader; then, in the order of their offsets, the examples as JSON texts, the blocks of
// a table with a RecordPlace for each example, the offsets of these blocks, and the first bad lines with
// their reasons.
struct RecordPlace {
  u64 offset = 0, bytes = 0;
  i64 length = 0;  // tokens
};
struct RecordFileHeader {
  char magic[16] = {};
  char hash[32] = {};                 // of the examples, hexadecimal digits
  u64 body_hash = 0;                  // of all bytes after the header
  u64 n_examples = 0, directory = 0;  // of the table
  i64 n_tokens = 0, longest = 0;      // sum and maximum of the lengths
  i64 n_bad = 0;                      // bad lines
  u64 bad = 0, bad_bytes = 0;         // offset and size of their text
  u64 header_hash = 0;                // of the bytes above
};

// Const and thread-safe. Memory: 8 bytes per 4096 examples.
class RecordFile : public Dataset {
 public:
  // ContentsError: no such file, or one of another version.
  explicit RecordFile(const std::string& path);
  static RecordFile open(const std::string& path) { return RecordFile(path); }
  RecordFile(const RecordFile&) = delete;
  RecordFile& operator=(const RecordFile&) = delete;

  // ContentsError if a byte of the file has changed.
  void verify() const;

  i64 size() const override { return static_cast<i64>(table_.size()); }
  i64 length(i64 i) const override { return table_.at(static_cast<u64>(i)).length; }
  i64 n_tokens() const { return header_.n_tokens; }
  Example get(i64 i) const override;
  std::string fingerprint() const override { return {header_.hash, sizeof header_.hash}; }
  Reading reading() const override { return Reading::threads; }
  std::string describe() const override;

 private:
  [[noreturn]] void damaged() const;
  static RecordFileHeader header_of(const ReadFile& file);
  std::string text_at(u64 offset, u64 bytes) const;

  ReadFile file_;
  RecordFileHeader header_;
  BlockTableReader<RecordPlace> table_;
};

// Writes such a file.
class RecordWriter {
 public:
  explicit RecordWriter(const std::string& path);
  void add(Example e);
  void add_bad(const std::string& why);
  // ContentsError with the name of the source: no examples.
  void finish(const std::string& source);

 private:
  HashedFile file_;
  TableWriter<RecordPlace> places_;
  Hasher hasher_;
  RecordFileHeader header_;
  std::string bad_;  // the first bad lines, each after "\n  "
};

}  // namespace redco
