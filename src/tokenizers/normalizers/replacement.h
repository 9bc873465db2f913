// Replace, a normalizer and a decoder: replaces each match of a pattern by a text.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/json_fields.h"
#include "unicode/regex.h"

namespace redco {

// `text` with each `from` replaced by `to`. An empty `from` matches between all characters, as in Rust and
// Python.
std::string replace_all(std::string_view text, std::string_view from, std::string_view to);

// Immutable and thread-safe.
class Replacement {
 public:
  // Reads `pattern` ({"String": ...} or {"Regex": ...}) and `content`. ContentsError for anything else.
  explicit Replacement(JsonFields& f);

  std::string apply(std::string_view text) const;

  // A fast check: true means that `text` has no match. False means that it may have one.
  bool unchanged(std::string_view text) const {
    return regex_ == nullptr && text.find(literal_) == std::string_view::npos;
  }

  // The length of the match at the start of the text; 0 if there is none.
  std::size_t at_front(std::string_view text) const;

  const std::string& content() const { return content_; }

 private:
  std::unique_ptr<Regex> regex_;  // nullptr for a plain text
  std::string literal_;
  std::string content_;
};

}  // namespace redco
