// The words of a template, as jinja2's lexer cuts them with trim_blocks and lstrip_blocks.
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
  string,  // unescaped
  integer,
  real,
  op,
  end,
};

struct Token {
  TokenKind kind;
  std::size_t at;  // its byte in the source
  std::string text;
  i64 integer = 0;
  double real = 0;
};

// A template's text with its position's line and column, for errors.
class Source {
 public:
  // Newlines become \n, and one at the end goes, as jinja2 has it. ContentsError: not UTF-8, or more than 1
  // MiB.
  Source(std::string_view text, std::string where);
  const std::string& text() const { return text_; }
  std::string position(std::size_t at) const;  // "where:line:column"
  [[noreturn]] void fail(std::size_t at, const std::string& message) const;

 private:
  std::string text_, where_;
};

// The last token is `end`. ContentsError for what is no template.
std::vector<Token> lex(const Source& source);

}  // namespace redco::jinja
