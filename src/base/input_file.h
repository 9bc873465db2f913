// Reads files that may be compressed with gzip or zstd. The first bytes decide; a file whose name ends in .gz
// or .zst without the bytes of this format is an error. Contents stream through buffers of bounded size (at
// most 128 MiB for zstd, by the file's window), so memory use does not depend on the unpacked size.
//
// Errors: a missing file or a folder is a UsageError. Damage (truncated data, wrong checksum, trailing bytes)
// is a ContentsError with file and offset, thrown when reading reaches it. Failing reads are IoErrors.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/types.h"

namespace redco {

// The unpacked bytes of a file, in order. Only one thread at a time may use it.
class InputFile {
 public:
  static InputFile open(const std::string& path);  // a pipe also works
  // Opens a text file: skips the byte order mark of UTF-8. ContentsError for UTF-16 and UTF-32.
  static InputFile open_text(const std::string& path);
  InputFile(InputFile&&) noexcept;
  InputFile& operator=(InputFile&&) noexcept;
  ~InputFile();

  const std::string& path() const;
  bool is_compressed() const;
  // Fills `to` with up to n bytes and returns their number; 0 only at the end.
  std::size_t read(char* to, std::size_t n);
  u64 position() const;         // unpacked bytes returned so far
  u64 stored_position() const;  // bytes of the stored file consumed so far

 private:
  struct State;
  explicit InputFile(std::unique_ptr<State> s);
  std::unique_ptr<State> state_;
};

// The lines of a text file (InputFile::open_text) without their line ends (\n, or \r\n, which the log
// mentions). The last line may lack a line end.
class LineReader {
 public:
  // A longer line is a ContentsError: it is not text, and reading it could exhaust the memory.
  static constexpr std::size_t kMaxLine = std::size_t{64} << 20;

  explicit LineReader(const std::string& path, std::size_t max_line = kMaxLine);

  // The next line; false at the end.
  bool next(std::string& line);
  i64 line_number() const { return number_; }  // of the last returned line, from 1
  std::string where() const;                   // "file.jsonl:12", for messages
  u64 stored_position() const { return file_.stored_position(); }

 private:
  InputFile file_;
  std::size_t max_line_;
  std::string buffer_;
  std::size_t begin_ = 0, end_ = 0;  // unread part of buffer_
  i64 number_ = 0;
};

// The path in lower case, without .gz or .zst: its end tells the format of the contents.
std::string name_unpacked(const std::string& path);

}  // namespace redco
