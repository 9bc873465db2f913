// The files in a tar archive, in order: ustar, with the long names of GNU and of pax. Plain or compressed
// (base/input_file.h). Folders, links and other members are skipped.
#pragma once

#include <optional>
#include <string>

#include "base/input_file.h"

namespace redco {

// A file in a plain archive; images are read from their place without unpacking.
struct TarPlace {
  std::string archive;  // name of the archive
  i64 offset = 0, size = 0;
  std::string name;  // in the archive

  // "archive.tar@1536+2048:cat/1.png", and the place in such a text; nullopt for any other text.
  std::string text() const;
  static std::optional<TarPlace> of(const std::string& text);
};

class TarMembers {
 public:
  explicit TarMembers(const std::string& path) : file_(InputFile::open(path)) {}

  // The next file; false at the end. The contents of the one before are skipped unless they were read.
  // ContentsError with the archive's name and the byte: damage, or an archive that ends inside a member.
  bool next();
  const std::string& name() const { return name_; }
  i64 size() const { return size_; }
  i64 offset() const { return offset_; }  // of the contents in the unpacked archive
  // The contents, once. ContentsError if they have more than max_bytes.
  std::string read(i64 max_bytes);

  bool is_compressed() const { return file_.is_compressed(); }
  const std::string& path() const { return file_.path(); }
  u64 stored_position() const { return file_.stored_position(); }

 private:
  [[noreturn]] void fail(const std::string& why) const;
  std::size_t fill(char* to, std::size_t n);
  void skip(i64 n);

  InputFile file_;
  std::string name_;
  i64 size_ = 0, offset_ = 0;
  i64 left_ = 0;  // bytes of the contents and their padding that are unread
};

}  // namespace redco
