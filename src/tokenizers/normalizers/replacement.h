// Replace, as normalizers and decoders have it: every match of a pattern becomes another text.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/json_fields.h"
#include "unicode/regex.h"

namespace redco {

// `text` with every `from` as `to`; an empty `from` is between all characters, as in Rust and Python.
std::string replace_all(std::string_view text, std::string_view from, std::string_view to);

// Const and thread-safe.
class Replacement {
 public:
  // Reads `pattern` ({"String": ...} or {"Regex": ...}) and `content`. ContentsError for anything else.
  explicit Replacement(JsonFields& f);

  std::string apply(std::string_view text) const;

  // True where `text` has no match; a quick look that may miss some.
  bool unchanged(std::string_view text) const {
    return regex_ == nullptr && text.find(literal_) == std::string_view::npos;
  }

  // The length of the match at the text's begin, 0 for none.
  std::size_t at_front(std::string_view text) const;

  const std::string& content() const { return content_; }

 private:
  std::unique_ptr<Regex> regex_;  // or
  std::string literal_;
  std::string content_;
};

}  // namespace redco
