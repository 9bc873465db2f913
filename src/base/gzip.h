// Reading files that may be gzipped. Whether one is, its first two bytes say; a name that ends in .gz without
// them is an error. Contents stream through a buffer of fixed size, so a file that unpacks to terabytes costs
// no memory.
//
// Errors: a missing file or a folder is a UsageError; damage (cut short, broken checksum, trailing bytes) is
// a ContentsError with the file and the offset in it, thrown when reading gets there; failing reads are
// IoErrors.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/types.h"

namespace redco {

// The unpacked bytes of a file, one after the other. For one thread at a time.
class InputFile {
 public:
  static InputFile open(const std::string& path);  // also pipes
  InputFile(InputFile&&) noexcept;
  InputFile& operator=(InputFile&&) noexcept;
  ~InputFile();

  const std::string& path() const;
  bool is_gzip() const;
  // Fills `to` with up to n bytes and returns how many; 0 only at the end.
  std::size_t read(char* to, std::size_t n);
  u64 position() const;         // unpacked bytes handed out
  u64 stored_position() const;  // bytes of the file consumed

 private:
  struct State;
  explicit InputFile(std::unique_ptr<State> s);
  std::unique_ptr<State> state_;
};

// The lines of a file, without their ends (\n or \r\n). A last line without an end counts, too.
class LineReader {
 public:
  // A longer line than this is a ContentsError: nobody's text, and it would fill the memory.
  static constexpr std::size_t kMaxLine = std::size_t{64} << 20;

  explicit LineReader(const std::string& path, std::size_t max_line = kMaxLine);

  // The next line; false at the end.
  bool next(std::string& line);
  i64 line_number() const { return number_; }  // of the line last returned, from 1
  std::string where() const;                   // "file.jsonl:12", for messages
  u64 stored_position() const { return file_.stored_position(); }

 private:
  InputFile file_;
  std::size_t max_line_;
  std::string buffer_;
  std::size_t begin_ = 0, end_ = 0;  // unread part of buffer_
  i64 number_ = 0;
};

// A whole file, unpacked. ContentsError if that is more than max_bytes.
std::string read_unpacked(const std::string& path, u64 max_bytes);

}  // namespace redco
