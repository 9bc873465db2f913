// The lexer: splits a template into tokens like jinja2's lexer with trim_blocks and lstrip_blocks.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/types.h"

namespace redco::jinja {

enum class TokenKind : std::uint8_t {
  data,  // text between tags
  variable_begin,
  variable_end,
  block_begin,
  block_end,
  name,
  string,  // text: the string without quotes and escapes
  integer,
  real,
  op,
  end,
};

struct Token {
  TokenKind kind;
  std::size_t at;  // byte offset in the source
  std::string text;
  i64 integer = 0;
  double real = 0;
};

// The text of a template; gives the line and column of a byte offset for errors.
class Source {
 public:
  // As in jinja2, line breaks become \n, and one at the end is removed. ContentsError for text that is not
  // UTF-8 or larger than 1 MiB.
  Source(std::string_view text, std::string where);
  const std::string& text() const { return text_; }
  std::string position(std::size_t at) const;  // "where:line:column"
  [[noreturn]] void fail(std::size_t at, const std::string& message) const;

 private:
  std::string text_, where_;
};

// The last token is `end`. ContentsError for invalid templates.
std::vector<Token> lex(const Source& source);

}  // namespace redco::jinja
