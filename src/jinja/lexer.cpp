#include "jinja/lexer.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/error.h"
#include "base/utf8.h"
#include "jinja/text.h"
#include "jinja/value.h"
#include "unicode/python_text.h"

namespace redco::jinja {
namespace {

constexpr std::size_t kMaxBytes = 1 << 20;
constexpr std::size_t kMaxTokens = 200'000;

std::string normalize_newlines(std::string_view s) {
  std::string out;
  out.reserve(s.size());
  for (std::size_t i = 0; i < s.size(); ++i) {
    if (s[i] == '\r') {
      out += '\n';
      if (i + 1 < s.size() && s[i + 1] == '\n') ++i;
    } else {
      out += s[i];
    }
  }
  return out;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_word(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80;
}

class Lexer {
 public:
  explicit Lexer(const Source& source) : source_(source), s_(source.text()) {}

  std::vector<Token> run() {
    while (at_ < s_.size()) root();
    push(TokenKind::end, s_.size(), "");
    return std::move(out_);
  }

 private:
  void push(TokenKind kind, std::size_t at, std::string text) {
    if (out_.size() >= kMaxTokens) source_.fail(at, fmt::format("more than {} tokens", kMaxTokens));
    out_.push_back({kind, at, std::move(text)});
  }
  bool starts(std::size_t at, std::string_view what) const { return s_.compare(at, what.size(), what) == 0; }
  std::size_t skip_space(std::size_t at) const {
    return s_.size() - strip_left(std::string_view(s_).substr(at)).size();
  }
  void move_to(std::size_t at) {
    line_starting_ = at > 0 && s_[at - 1] == '\n';
    at_ = at;
  }

  // Adds the text before a tag; sign: the tag's '-' or '+', or 0.
  void data(std::size_t from, std::size_t to, char sign, bool is_variable) {
    std::string_view text = std::string_view(s_).substr(from, to - from);
    if (sign == '-') {
      text = strip_right(text);
    } else if (sign != '+' && !is_variable) {
      const std::size_t newline = text.rfind('\n');
      const std::size_t line = newline == text.npos ? 0 : newline + 1;
      if ((line > 0 || line_starting_) && strip_left(text.substr(line)).empty()) text = text.substr(0, line);
    }
    if (!text.empty()) push(TokenKind::data, from, std::string(text));
  }

  char sign_at(std::size_t at) const {
    return at < s_.size() && (s_[at] == '-' || s_[at] == '+') ? s_[at] : '\0';
  }

  void root() {
    std::size_t tag = at_;
    while (true) {
      tag = s_.find('{', tag);
      if (tag == s_.npos || tag + 1 >= s_.size()) {
        push(TokenKind::data, at_, s_.substr(at_));
        at_ = s_.size();
        return;
      }
      if (s_[tag + 1] == '%' || s_[tag + 1] == '{' || s_[tag + 1] == '#') break;
      ++tag;
    }
    const char type = s_[tag + 1];
    const char sign = sign_at(tag + 2);
    data(at_, tag, sign, type == '{');
    move_to(tag + 2 + (sign ? 1 : 0));
    if (type == '#') return comment(tag);
    if (type == '%' && raw(tag)) return;
    push(type == '{' ? TokenKind::variable_begin : TokenKind::block_begin, tag, "");
    code(tag, type == '{' ? "}}" : "%}", type == '%');
  }

  // After the end of a block or comment: skips all white space if the sign is '-', else one line break.
  void trim_after(std::size_t at, char sign) {
    if (sign == '-')
      at = skip_space(at);
    else if (sign == 0 && at < s_.size() && s_[at] == '\n')
      ++at;
    move_to(at);
  }

  void comment(std::size_t tag) {
    const std::size_t end = s_.find("#}", at_);
    if (end == s_.npos) source_.fail(tag, "this comment has no end, expected #}");
    trim_after(end + 2, end > at_ ? sign_at(end - 1) : '\0');
  }

  // Reads {% raw %}...{% endraw %} as data; false for any other tag.
  bool raw(std::size_t tag) {
    std::size_t at = skip_space(at_);
    if (!starts(at, "raw")) return false;
    at = skip_space(at + 3);
    if (starts(at, "-%}"))
      at = skip_space(at + 3);
    else if (starts(at, "%}"))
      at += 2;
    else
      return false;
    move_to(at);
    for (std::size_t open = s_.find("{%", at); open != s_.npos; open = s_.find("{%", open + 1)) {
      const char sign = sign_at(open + 2);
      std::size_t word = skip_space(open + 2 + (sign ? 1 : 0));
      if (!starts(word, "endraw")) continue;
      word = skip_space(word + 6);
      const char closing = sign_at(word);
      if (closing) ++word;
      if (!starts(word, "%}")) continue;
      data(at, open, sign, false);
      trim_after(word + 2, closing);
      return true;
    }
    if (at < s_.size()) source_.fail(tag, "raw has no end, expected {% endraw %}");
    return true;
  }

  // Reads the tokens of a tag, and its end.
  void code(std::size_t tag, std::string_view end, bool is_block) {
    std::string open;  // closing brackets that are still missing, the innermost last
    while (true) {
      at_ = skip_space(at_);
      if (at_ >= s_.size()) source_.fail(tag, fmt::format("this tag has no end, expected {}", end));
      if (open.empty()) {
        const char sign = sign_at(at_);
        if (starts(at_ + (sign ? 1 : 0), end) && (is_block || sign != '+')) {
          push(is_block ? TokenKind::block_end : TokenKind::variable_end, at_, "");
          const std::size_t after = at_ + (sign ? 1 : 0) + 2;
          if (is_block)
            trim_after(after, sign);
          else
            move_to(sign == '-' ? skip_space(after) : after);
          return;
        }
      }
      const char c = s_[at_];
      if (is_digit(c))
        number();
      else if (is_word(c))
        name();
      else if (c == '\'' || c == '"')
        string(c);
      else
        op(open);
    }
  }

  void name() {
    std::size_t to = at_;
    while (to < s_.size() && is_word(s_[to])) {
      const char* p = s_.data() + to;
      if (static_cast<unsigned char>(*p) >= 0x80 && is_python_space(next_code_point(p))) break;
      to = static_cast<std::size_t>(p - s_.data()) + (p == s_.data() + to);
    }
    if (to == at_) source_.fail(at_, "unexpected character");
    push(TokenKind::name, at_, s_.substr(at_, to - at_));
    at_ = to;
  }

  // The end of a run of digits with single underscores between them.
  std::size_t digits(std::size_t at, int base = 10) const {
    auto ok = [&](std::size_t i) {
      if (i >= s_.size()) return false;
      const char c = s_[i];
      if (base == 16) return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
      return c >= '0' && c < '0' + base;
    };
    while (ok(at) || (at < s_.size() && s_[at] == '_' && ok(at + 1))) ++at;
    return at;
  }

  void number() {
    const std::size_t from = at_;
    auto clean = [&](std::size_t begin, std::size_t to) {
      std::string t = s_.substr(begin, to - begin);
      t.erase(std::remove(t.begin(), t.end(), '_'), t.end());
      return t;
    };
    std::size_t to = digits(from);
    bool real = false;
    if (to + 1 < s_.size() && s_[to] == '.' && is_digit(s_[to + 1])) {
      real = true;
      to = digits(to + 1);
    }
    if (to < s_.size() && (s_[to] == 'e' || s_[to] == 'E')) {
      std::size_t e = to + 1;
      if (sign_at(e)) ++e;
      if (e < s_.size() && is_digit(s_[e])) {
        real = true;
        to = digits(e);
      }
    }
    if (real && !(from > 0 && s_[from - 1] == '.')) {
      push(TokenKind::real, from, "");
      const std::string t = clean(from, to);
      const auto r = std::from_chars(t.data(), t.data() + t.size(), out_.back().real);
      if (r.ec != std::errc()) source_.fail(from, "a number out of range");
      at_ = to;
      return;
    }
    int base = 10;
    std::size_t begin = from;
    if (s_[from] == '0') {
      const char x = from + 1 < s_.size() ? static_cast<char>(s_[from + 1] | 0x20) : '\0';
      const int b = x == 'x' ? 16 : x == 'o' ? 8 : x == 'b' ? 2 : 10;
      std::size_t first = from + 2;
      if (b != 10 && first < s_.size() && s_[first] == '_') ++first;
      if (b != 10 && digits(first, b) > first) {
        base = b;
        begin = from + 2;
      }
    }
    to = digits(begin, base);
    if (base == 10 && s_[from] == '0') {  // 007 is lexed as 00 and 7
      to = from + 1;
      while (to < s_.size() && (s_[to] == '0' || (s_[to] == '_' && to + 1 < s_.size() && s_[to + 1] == '0')))
        ++to;
    }
    push(TokenKind::integer, from, "");
    const std::string t = clean(begin, to);
    const auto r = std::from_chars(t.data(), t.data() + t.size(), out_.back().integer, base);
    if (r.ec != std::errc()) source_.fail(from, "a number beyond 64 bits");
    at_ = to;
  }

  void string(char quote) {
    const std::size_t from = at_;
    std::size_t to = from + 1;
    while (to < s_.size() && s_[to] != quote) to += s_[to] == '\\' ? 2 : 1;
    if (to >= s_.size()) source_.fail(from, "this string has no closing quote");
    push(TokenKind::string, from, unescape(from + 1, to));
    at_ = to + 1;
  }

  std::string unescape(std::size_t from, std::size_t to) const {
    std::string out;
    auto hex = [&](std::size_t at, std::size_t n) {
      std::uint32_t c = 0;
      const char* begin = s_.data() + at;
      if (at + n > to) source_.fail(at, fmt::format("expected {} hexadecimal digits", n));
      const auto r = std::from_chars(begin, begin + n, c, 16);
      if (r.ec != std::errc() || r.ptr != begin + n)
        source_.fail(at, fmt::format("expected {} hexadecimal digits", n));
      if (c > 0x10FFFF || (c >= 0xD800 && c < 0xE000)) source_.fail(at, "no such character");
      append_utf8(static_cast<char32_t>(c), out);
      return at + n;
    };
    for (std::size_t i = from; i < to;) {
      if (s_[i] != '\\') {
        out += s_[i++];
        continue;
      }
      const char c = s_[i + 1];
      i += 2;
      switch (c) {
        case '\n':
          break;
        case '\\':
          out += '\\';
          break;
        case '\'':
          out += '\'';
          break;
        case '"':
          out += '"';
          break;
        case 'a':
          out += '\a';
          break;
        case 'b':
          out += '\b';
          break;
        case 'f':
          out += '\f';
          break;
        case 'n':
          out += '\n';
          break;
        case 'r':
          out += '\r';
          break;
        case 't':
          out += '\t';
          break;
        case 'v':
          out += '\v';
          break;
        case 'x':
          i = hex(i, 2);
          break;
        case 'u':
          i = hex(i, 4);
          break;
        case 'U':
          i = hex(i, 8);
          break;
        case 'N':
          source_.fail(i - 2, "characters by name (\\N{...}) are not supported");
        default:
          if (c >= '0' && c <= '7') {
            std::uint32_t v = 0;
            std::size_t j = i - 1;
            while (j < to && j < i + 2 && s_[j] >= '0' && s_[j] <= '7')
              v = v * 8 + static_cast<std::uint32_t>(s_[j++] - '0');
            append_utf8(static_cast<char32_t>(v), out);
            i = j;
          } else {  // Python keeps the backslash of an unknown escape
            out += '\\';
            out += c;
          }
      }
    }
    return out;
  }

  void op(std::string& open) {
    static constexpr std::string_view kLong[] = {"//", "**", "==", "!=", ">=", "<="};
    static constexpr std::string_view kShort = "+-/*%~[](){}><=.:|,;";
    for (std::string_view o : kLong)
      if (starts(at_, o)) {
        push(TokenKind::op, at_, std::string(o));
        at_ += 2;
        return;
      }
    const char c = s_[at_];
    if (kShort.find(c) == kShort.npos) source_.fail(at_, fmt::format("unexpected character '{}'", shown(c)));
    if (c == '{' || c == '(' || c == '[') {
      open += c == '{' ? '}' : c == '(' ? ')' : ']';
    } else if (c == '}' || c == ')' || c == ']') {
      if (open.empty()) source_.fail(at_, fmt::format("unexpected '{}'", c));
      if (open.back() != c) source_.fail(at_, fmt::format("unexpected '{}', expected '{}'", c, open.back()));
      open.pop_back();
    }
    push(TokenKind::op, at_++, std::string(1, c));
  }

  static char shown(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F ? '?' : c; }

  const Source& source_;
  const std::string& s_;
  std::size_t at_ = 0;
  bool line_starting_ = true;
  std::vector<Token> out_;
};

}  // namespace

Source::Source(std::string_view text, std::string where) : where_(std::move(where)) {
  if (text.size() > kMaxBytes)
    throw ContentsError("{}: the template has {} bytes, expected at most {}", where_, text.size(), kMaxBytes);
  if (const std::size_t bad = find_invalid_utf8(text); bad != text.npos)
    throw ContentsError("{}: byte {} of the template is not UTF-8", where_, bad);
  text_ = normalize_newlines(text);
  if (text_.ends_with('\n')) text_.pop_back();
}

std::string Source::position(std::size_t at) const {
  const std::string_view before = std::string_view(text_).substr(0, std::min(at, text_.size()));
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const std::size_t newline = before.rfind('\n');
  const i64 column = 1 + code_points(before.substr(newline == before.npos ? 0 : newline + 1));
  return fmt::format("{}:{}:{}", where_, line, column);
}

void Source::fail(std::size_t at, const std::string& message) const {
  throw ContentsError("{}: {}", position(at), message);
}

std::vector<Token> lex(const Source& source) { return Lexer(source).run(); }

}  // namespace redco::jinja
