// Decompression of gzip and zstd streams from a stored file; the part of InputFile that depends on the
// format.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <string_view>

#include "base/types.h"

namespace redco {

// The bytes of an open file, not decoded, read through a buffer of fixed size.
class StoredFile {
 public:
  explicit StoredFile(const std::string& path);  // errors as InputFile::open
  StoredFile(const StoredFile&) = delete;
  ~StoredFile();

  const std::string& path() const { return path_; }
  // The unread bytes in the buffer.
  std::string_view unread() const { return {buffer_.data() + begin_, end_ - begin_}; }
  void skip(std::size_t n) { begin_ += n; }
  // Makes at least n bytes unread, less at the end of the file. REQUIRES: n is at most 64.
  void need(std::size_t n);
  u64 offset() const { return file_offset_ - (end_ - begin_); }  // of the first unread byte

 private:
  std::string path_;
  int fd_ = -1;
  std::array<char, 1 << 16> buffer_;
  std::size_t begin_ = 0, end_ = 0;
  u64 file_offset_ = 0;  // of buffer_[end_]
  bool at_end_ = false;
};

// Decompresses a StoredFile, which must outlive it.
class Unpacker {
 public:
  virtual ~Unpacker() = default;
  // Fills `to` with up to n unpacked bytes and returns their number; 0 only at the end. REQUIRES: n > 0.
  // Throws ContentsError at damage. `unpacked`: bytes returned so far, for messages.
  virtual std::size_t read(char* to, std::size_t n, u64 unpacked) = 0;
};

// By the first bytes of the file; null if it is not compressed. ContentsError if the name ends in .gz or
// .zst, but the file is not of this format.
std::unique_ptr<Unpacker> make_unpacker(StoredFile& file);

}  // namespace redco
