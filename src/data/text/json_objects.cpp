#include "data/text/json_objects.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/log_once.h"
#include "base/words.h"

namespace redco {

namespace {
constexpr std::size_t kJsonBuffer = std::size_t{1} << 18;

// Keys of the array of all records.
bool holds_records(const std::string& key) {
  return key == "data" || key == "rows" || key == "records" || key == "examples";
}

// The forms of pandas' to_json() that have no object per row: "columns" (the default) and "index",
// {"a": {"0": 1, "1": 2}}, and "split", {"columns": [...], "index": [...], "data": [[...]]}.
bool is_pandas_table(const std::string& object) {
  const auto j = nlohmann::ordered_json::parse(object, nullptr, false);
  if (!j.is_object() || j.empty()) return false;
  if (j.contains("columns") && j.contains("index") && j.contains("data")) return true;
  const auto has_rows = [](const auto& column) { return column.is_object() && column.contains("0"); };
  const auto is_row = [](const auto& row) { return row.is_object(); };
  return std::ranges::all_of(j, has_rows) || (j.contains("0") && std::ranges::all_of(j, is_row));
}

}  // namespace

JsonObjects::JsonObjects(const std::string& path)
    : file_(InputFile::open_text(path)), buffer_(kJsonBuffer, '\0') {}

std::string JsonObjects::where() const { return fmt::format("{}:{}", file_.path(), begin_line_); }

void JsonObjects::fail(const std::string& why) const {
  throw ContentsError("{}:{}: {}", file_.path(), line_, why);
}

int JsonObjects::peek() {
  if (at_ == end_) {
    end_ = file_.read(buffer_.data(), buffer_.size());
    at_ = 0;
    if (end_ == 0) return -1;
  }
  return static_cast<unsigned char>(buffer_[at_]);
}

int JsonObjects::peek_past_blanks() {
  for (;; ++at_) {
    const int c = peek();
    if (c != ' ' && c != '\t' && c != '\n' && c != '\r') return c;
    line_ += c == '\n';
  }
}

void JsonObjects::end_array() {
  ++at_;
  ended_ = true;
  if (!in_object_) {
    if (peek_past_blanks() != -1)
      fail("text after the array. Expected one array of objects, or objects one after another");
    return;
  }
  char last = ' ';  // other keys may follow
  for (int c; (c = peek_past_blanks()) != -1; ++at_) last = static_cast<char>(c);
  if (last != '}') fail("the file ends inside the object that has the array; expected }. Was the file cut?");
}

bool JsonObjects::next(std::string& object) {
  object.clear();
  if (ended_) return false;
  int c = peek_past_blanks();
  if (!started_) {
    started_ = true;
    in_array_ = c == '[';
    if (in_array_) {
      ++at_;
      c = peek_past_blanks();
    }
  } else if (in_array_ && !first_ && c == ',') {
    ++at_;
    c = peek_past_blanks();
    if (c == ']') fail("a comma before the ] that ends the array. Remove the comma");
  } else if (in_array_ && !first_ && c != ']' && c != -1) {
    fail("expected a comma between two objects of the array");
  }
  if (in_array_ && c == ']') {
    end_array();
    return false;
  }
  if (c == -1) {
    if (in_array_) fail("the file ends inside the array; expected ]. Was the file cut?");
    return false;
  }
  begin_line_ = line_;
  if (c != '{')
    fail(fmt::format("expected an object, {{\"key\": value, ...}}, got {}",
                     excerpt(std::string_view(buffer_).substr(at_, std::min<std::size_t>(40, end_ - at_)))));
  const bool may_wrap = first_ && !in_array_;
  first_ = false;
  int depth = 0;
  bool in_text = false, escaped = false;
  std::string text;  // the begin of the last one: of the key in front of a value
  while ((c = peek()) != -1) {
    ++at_;
    object += static_cast<char>(c);
    if (object.size() > LineReader::kMaxLine)
      throw ContentsError(
          "{}: the object that begins here has more than {} bytes. Check for a missing quote or brace; tables of "
          "pandas need orient=\"records\"",
          where(), LineReader::kMaxLine);
    line_ += c == '\n';
    if (in_text) {
      if (escaped)
        escaped = false;
      else if (c == '\\')
        escaped = true;
      else
        in_text = c != '"';
      if (in_text && text.size() < 16) text += static_cast<char>(c);
    } else if (c == '"') {
      in_text = true;
      text.clear();
    } else if (c == '[' && depth == 1 && may_wrap && holds_records(text) && peek_past_blanks() == '{') {
      log_once(LogLevel::info, fmt::format("[data] {}: the records are those of \"{}\"", file_.path(), text));
      first_ = in_array_ = in_object_ = true;
      return next(object);
    } else if (c == '{' || c == '[') {
      ++depth;
    } else if ((c == '}' || c == ']') && --depth == 0) {
      if (may_wrap && peek_past_blanks() == -1 && is_pandas_table(object))
        throw ContentsError(
            "{}: one object with all rows, as pandas' to_json() writes it; expected an object per row. Write the file "
            "with df.to_json(path, orient=\"records\")",
            where());
      return true;
    }
  }
  throw ContentsError("{}: the object that begins here does not end. Was the file cut?", where());
}

}  // namespace redco
