// JSON lines (JSONL): a file with one JSON object per line, plain or compressed.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "base/input_file.h"
#include "base/types.h"

namespace redco {

class JsonLines {
 public:
  explicit JsonLines(const std::string& path);  // "-": standard input

  // Reads the next line that is not blank; false at the end. Errors are LineReader's.
  bool next(std::string& line);

  i64 line_number() const { return reader_.line_number(); }   // of the last returned line, from 1
  std::string where() const { return where(line_number()); }  // "file.jsonl:12", for messages
  std::string where(i64 line_number) const;                   // thread-safe
  u64 stored_position() const { return reader_.stored_position(); }

 private:
  std::string name_;
  LineReader reader_;
};

// The text with null for the words NaN, Infinity and -Infinity outside of texts: Python writes them, JSON has
// none.
std::string without_python_numbers(std::string_view text);

// The object of a line; Python's NaN and Infinity are null. ContentsError, starting with `where`, for
// anything else.
nlohmann::ordered_json parse_json_line(std::string_view line, const std::string& where);

// The string in the field `key` of an object. ContentsError, starting with `where`, for anything else.
std::string json_line_text(const nlohmann::ordered_json& object, const char* key, const std::string& where);

}  // namespace redco
