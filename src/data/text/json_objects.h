// The objects of a JSON file: the elements of one array, or objects one after another. An object may take
// several lines, and a line may hold several objects. Plain or compressed. The array may be the value of the
// key data, rows, records or examples of the file's object, {"version": "1", "data": [{...}, ...]}; the log
// names the key.
#pragma once

#include <string>

#include "base/input_file.h"

namespace redco {

class JsonObjects {
 public:
  // Errors as InputFile::open_text().
  explicit JsonObjects(const std::string& path);

  // The text of the next object, which may still be invalid JSON inside its braces; false at the end.
  // ContentsError with file and line: anything but objects, an object that does not end or is longer than
  // LineReader::kMaxLine bytes, text after the array, one object with all rows (pandas).
  bool next(std::string& object);
  i64 line_number() const { return begin_line_; }  // first line of the last object, from 1
  std::string where() const;                       // "file.json:12"
  u64 stored_position() const { return file_.stored_position(); }

 private:
  int peek();  // the next byte, or -1 at the end
  int peek_past_blanks();
  void end_array();
  [[noreturn]] void fail(const std::string& why) const;

  InputFile file_;
  std::string buffer_;
  std::size_t at_ = 0, end_ = 0;  // unread part of buffer_
  i64 line_ = 1, begin_line_ = 1;
  bool started_ = false, in_array_ = false, ended_ = false;
  bool in_object_ = false;  // the array is the value of a key
  bool first_ = true;       // no element of the array was read
};

}  // namespace redco
