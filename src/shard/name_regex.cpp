#include "shard/name_regex.h"

#include <re2/re2.h>

#include "base/error.h"

namespace redco {

namespace {

// Finds what Python's re and RE2 don't read alike. RE2 finds all other mistakes.
class Dialect {
 public:
  explicit Dialect(const std::string& text) : text_(text) {}

  void check() {
    bool repeats = false;  // a quantifier may follow
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '\\') {
        repeats = !is_border(escape());
      } else if (c == '[') {
        bracket();
        repeats = true;
      } else if (c == '(') {
        group();
        repeats = false;
      } else if (c == '*' || c == '+' || c == '?' || c == '{') {
        if (!repeats) fail(c == '{' ? "nothing to repeat; a literal brace is '\\{'" : "nothing to repeat");
        quantifier();
        repeats = false;
      } else {
        repeats = c != '^' && c != '$' && c != '|';
        ++at_;
      }
    }
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw UsageError("[sharding_rules] match: '{}': {} at position {}", text_, what, at_ + 1);
  }
  char next(std::size_t n = 1) const { return at_ + n < text_.size() ? text_[at_ + n] : '\0'; }
  static bool is_digit(char c) { return c >= '0' && c <= '9'; }
  static bool is_border(char escaped) { return escaped == 'b' || escaped == 'A'; }
  static bool is_class(char escaped) { return std::string_view("dDwWsS").find(escaped) != std::string::npos; }

  // Skips a backslash and what it escapes, and returns the character after it.
  char escape(bool in_bracket = false) {
    const char c = next();
    const bool named = is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    const std::string_view known = in_bracket ? "dDwWsStnrfvax" : "dDwWsStnrfvaxbA";
    if (named && known.find(c) == std::string::npos) fail(std::string("'\\") + c + "' is not supported");
    if (c == 'x' && next(2) == '{') fail("'\\x{' is not supported");
    at_ += c == '\0' ? 1 : 2;
    return c;
  }

  void bracket() {
    const std::size_t begin = at_;
    ++at_;
    if (at_ < text_.size() && text_[at_] == '^') ++at_;
    bool after_class = false;  // \d-z is no range
    for (bool first = true; at_ < text_.size() && (first || text_[at_] != ']'); first = false) {
      const char c = text_[at_];
      if (c == '[' && next() == ':') fail("classes like '[:alpha:]' are not supported");
      if (c == '-' && after_class && next() != ']')
        fail("a range in '[...]' whose ends are not single characters");
      if (c == '\\') {
        after_class = is_class(escape(true));
      } else {
        after_class = false;
        ++at_;
      }
    }
    if (at_ < text_.size()) {
      ++at_;
    } else {
      at_ = begin;
      fail("'[' without a matching ']'");
    }
  }

  void group() {
    if (next() != '?') {
      ++at_;
      return;
    }
    std::size_t end = at_ + 2;
    while (end < text_.size() && std::string_view("ims-").find(text_[end]) != std::string::npos) ++end;
    const bool flags = end > at_ + 2 && end < text_.size();
    if (flags && text_[end] == ')' && at_ == 0 && text_.substr(2, end - 2).find('-') == std::string::npos) {
      at_ = end + 1;  // (?i) at the beginning
    } else if (end < text_.size() && text_[end] == ':') {
      at_ = end + 1;  // (?: or (?i:
    } else if (text_.compare(at_, 4, "(?P<") == 0) {
      at_ += 4;
    } else {
      fail(
          "'(?' other than '(?:', '(?P<name>' and flags (look-around is not supported; write a rule for the "
          "exception before this one)");
    }
  }

  void quantifier() {
    if (text_[at_] == '{') {
      if (!is_digit(next())) fail("'{' must begin {m}, {m,} or {m,n}; a literal brace is '\\{'");
      const std::size_t end = text_.find_first_not_of("0123456789,", at_ + 1);
      const std::string inside = text_.substr(at_ + 1, end - at_ - 1);
      if (end == std::string::npos || text_[end] != '}' || inside.find(',') != inside.rfind(','))
        fail("'{' without a matching '}'");
      for (std::size_t i = at_ + 1, digits = 0; i < end; ++i) {
        digits = is_digit(text_[i]) ? digits + 1 : 0;
        if (digits > 4) fail("the repeat count is above 1000");  // RE2 would read it as literal text
      }
      at_ = end;
    }
    ++at_;
    if (at_ < text_.size() && text_[at_] == '?') ++at_;
    if (at_ < text_.size() && std::string_view("*+?{").find(text_[at_]) != std::string::npos)
      fail("multiple repeat");
  }

  const std::string& text_;
  std::size_t at_ = 0;
};

}  // namespace

NameRegex::NameRegex(std::string_view expression) : expression_(expression) {
  if (expression.size() > kMaxLength)
    throw UsageError("[sharding_rules] match: '{}...' has {} characters; at most {} are allowed",
                     expression.substr(0, 60), expression.size(), kMaxLength);
  Dialect(expression_).check();
  re2::RE2::Options options;
  options.set_log_errors(false);
  compiled_ = std::make_shared<const re2::RE2>(expression_, options);
  if (!compiled_->ok()) throw UsageError("[sharding_rules] match: '{}': {}", expression_, compiled_->error());
}

bool NameRegex::matches(std::string_view text) const {
  return re2::RE2::FullMatch(re2::StringPiece(text.data(), text.size()), *compiled_);
}

}  // namespace redco
