// The container of all index files: what they have in common, once. A format adds its facts (a struct of
// numbers), its records and its tables (data/index/block_table.h).
//
// File (little-endian): IndexHead; the format's facts; the body: records and tables, and the texts about the
// first bad lines. It is complete or absent. Head and facts have a hash, which is compared when the file is
// opened, and so has the body, which verify() compares. Memory does not depend on the size of a file.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "data/index/block_table.h"

namespace redco {

struct IndexFormat {
  char magic[8];
  u32 version;       // raised when the same data could give another file
  const char* what;  // "example index", for messages
};

struct IndexHead {
  char magic[8];
  u32 version;
  u32 facts_bytes;
  u64 data_hash[2];  // of the data and of everything that the examples depend on
  u64 n_bad;         // skipped lines
  u64 bad, bad_end;  // offsets of the first ones: "FILE:LINE: reason\n", with the number of the file from 0
  u64 body_hash;     // XXH3 of what follows the facts
  u64 hash;          // XXH3 of all above and of the facts
};
static_assert(sizeof(IndexHead) == 72);

class IndexWriter {
 public:
  static constexpr u64 kBadShown = 5;

  // Errors as DurableFile.
  IndexWriter(const std::string& path, const IndexFormat& format, std::size_t facts_bytes);

  HashedFile& file() { return file_; }
  // A skipped line, "LINE: reason", of a file. The first kBadShown are kept.
  void add_bad(u64 file, std::string line);
  u64 n_bad() const { return head_.n_bad; }
  // "; 2 bad lines, the first: a.jsonl:7: reason", for the error that no example remains; "": none.
  std::string describe_bad(const std::vector<std::string>& files) const;

  // After all records and tables: the file appears under its name.
  template <class Facts>
  void finish(const Hash128& data_hash, const Facts& facts) {
    static_assert(std::is_trivially_copyable_v<Facts>);
    finish(data_hash, {reinterpret_cast<const char*>(&facts), sizeof facts});
  }

 private:
  void finish(const Hash128& data_hash, std::string_view facts);

  IndexHead head_{};
  HashedFile file_;
  std::string bad_;
};

// Const and thread-safe; movable, and readers of its tables stay valid.
class IndexFile {
 public:
  // Fills `facts`. ContentsError: not a complete file of this format and version.
  template <class Facts>
  static IndexFile open(const std::string& path, const IndexFormat& format, Facts& facts) {
    static_assert(std::is_trivially_copyable_v<Facts>);
    return IndexFile(path, format, reinterpret_cast<char*>(&facts), sizeof facts);
  }

  const ReadFile& file() const { return *file_; }
  const std::string& path() const { return file_->path(); }
  i64 body() const { return static_cast<i64>(sizeof head_ + head_.facts_bytes); }  // offset
  std::string data_hash() const { return Hash128{head_.data_hash[0], head_.data_hash[1]}.hex(); }
  i64 n_bad() const { return static_cast<i64>(head_.n_bad); }
  // The first skipped lines, "NAME:LINE: reason", one per line. files: names of this run's data files.
  std::string bad_lines(const std::vector<std::string>& files) const;
  // "2 bad lines skipped (data.skip_bad); the first:\n  NAME:LINE: reason..."; "": there are none.
  std::string describe_bad(const std::vector<std::string>& files) const;

  // Reads the whole body; ContentsError if a byte has changed.
  void verify() const;
  // Bytes of the file. ContentsError that names `what` if it has no such bytes.
  std::string bytes(u64 offset, u64 n, const std::string& what) const;
  // "PATH: WHAT is damaged. Remove the file; redco rebuilds it".
  ContentsError damaged(const std::string& what) const;

 private:
  IndexFile(const std::string& path, const IndexFormat& format, char* facts, std::size_t facts_bytes);

  std::shared_ptr<const ReadFile> file_;
  IndexHead head_{};
};

}  // namespace redco
