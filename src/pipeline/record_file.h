// The index of records: their examples in one file.
#pragma once

#include <string>

#include "base/hash.h"
#include "data/index/index_file.h"
#include "pipeline/example.h"

namespace redco {

// The file (data/index/index_file.h): in the order of their offsets, the examples as JSON texts, the blocks
// of a table with a RecordPlace for each example, and the offsets of these blocks.
struct RecordPlace {
  u64 offset = 0, bytes = 0;
  i64 length = 0;  // tokens
};
struct RecordFacts {
  u64 n_examples = 0, directory = 0;  // of the table
  i64 n_tokens = 0, longest = 0;      // sum and maximum of the lengths
};

// Const and thread-safe. Memory: 8 bytes per 4096 examples.
class RecordFile : public Dataset {
 public:
  // files: the data files of this run, for messages. ContentsError: no such file, or one of another version.
  explicit RecordFile(const std::string& path, std::vector<std::string> files = {});
  static RecordFile open(const std::string& path) { return RecordFile(path); }
  RecordFile(const RecordFile&) = delete;
  RecordFile& operator=(const RecordFile&) = delete;

  // ContentsError if a byte of the file has changed.
  void verify() const { file_.verify(); }

  i64 size() const override { return static_cast<i64>(table_.size()); }
  i64 length(i64 i) const override { return table_.at(static_cast<u64>(i)).length; }
  i64 n_tokens() const { return facts_.n_tokens; }
  Example get(i64 i) const override;
  std::string fingerprint() const override { return file_.data_hash(); }
  Reading reading() const override { return Reading::threads; }
  std::string describe() const override;

 private:
  RecordFacts facts_;  // filled by the file's open()
  IndexFile file_;
  std::vector<std::string> files_;
  BlockTableReader<RecordPlace> table_;
};

// Writes such a file.
class RecordWriter {
 public:
  explicit RecordWriter(const std::string& path);
  void add(Example e);
  // A bad line, "LINE: reason", of a file.
  void add_bad(u64 file, const std::string& line) { index_.add_bad(file, line); }
  // ContentsError with the name of the source: no examples. files: the names of the data files.
  void finish(const std::string& source, const std::vector<std::string>& files = {});

 private:
  IndexWriter index_;
  TableWriter<RecordPlace> places_;
  Hasher hasher_;
  RecordFacts facts_;
};

}  // namespace redco
