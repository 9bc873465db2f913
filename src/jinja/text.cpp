#include "jinja/text.h"

#include <utf8proc.h>

#include <limits>
#include <map>

#include "base/utf8.h"
#include "jinja/value.h"
#include "unicode/python_text.h"

namespace redco::jinja {
namespace {

// Characters whose upper or title case has more than one character (Unicode's SpecialCasing.txt). Each entry
// is the character, its upper or title case, a space.
constexpr std::string_view kUpper =
    "\u00DFSS \u0149\u02BCN \u01F0J\u030C \u0390\u0399\u0308\u0301 \u03B0\u03A5\u0308\u0301 "
    "\u0587\u0535\u0552 \u1E96H\u0331 \u1E97T\u0308 \u1E98W\u030A \u1E99Y\u030A \u1E9AA\u02BE "
    "\u1F50\u03A5\u0313 \u1F52\u03A5\u0313\u0300 \u1F54\u03A5\u0313\u0301 \u1F56\u03A5\u0313\u0342 "
    "\u1F80\u1F08\u0399 \u1F81\u1F09\u0399 \u1F82\u1F0A\u0399 \u1F83\u1F0B\u0399 \u1F84\u1F0C\u0399 "
    "\u1F85\u1F0D\u0399 \u1F86\u1F0E\u0399 \u1F87\u1F0F\u0399 \u1F88\u1F08\u0399 \u1F89\u1F09\u0399 "
    "\u1F8A\u1F0A\u0399 \u1F8B\u1F0B\u0399 \u1F8C\u1F0C\u0399 \u1F8D\u1F0D\u0399 \u1F8E\u1F0E\u0399 "
    "\u1F8F\u1F0F\u0399 \u1F90\u1F28\u0399 \u1F91\u1F29\u0399 \u1F92\u1F2A\u0399 \u1F93\u1F2B\u0399 "
    "\u1F94\u1F2C\u0399 \u1F95\u1F2D\u0399 \u1F96\u1F2E\u0399 \u1F97\u1F2F\u0399 \u1F98\u1F28\u0399 "
    "\u1F99\u1F29\u0399 \u1F9A\u1F2A\u0399 \u1F9B\u1F2B\u0399 \u1F9C\u1F2C\u0399 \u1F9D\u1F2D\u0399 "
    "\u1F9E\u1F2E\u0399 \u1F9F\u1F2F\u0399 \u1FA0\u1F68\u0399 \u1FA1\u1F69\u0399 \u1FA2\u1F6A\u0399 "
    "\u1FA3\u1F6B\u0399 \u1FA4\u1F6C\u0399 \u1FA5\u1F6D\u0399 \u1FA6\u1F6E\u0399 \u1FA7\u1F6F\u0399 "
    "\u1FA8\u1F68\u0399 \u1FA9\u1F69\u0399 \u1FAA\u1F6A\u0399 \u1FAB\u1F6B\u0399 \u1FAC\u1F6C\u0399 "
    "\u1FAD\u1F6D\u0399 \u1FAE\u1F6E\u0399 \u1FAF\u1F6F\u0399 \u1FB2\u1FBA\u0399 \u1FB3\u0391\u0399 "
    "\u1FB4\u0386\u0399 \u1FB6\u0391\u0342 \u1FB7\u0391\u0342\u0399 \u1FBC\u0391\u0399 \u1FC2\u1FCA\u0399 "
    "\u1FC3\u0397\u0399 \u1FC4\u0389\u0399 \u1FC6\u0397\u0342 \u1FC7\u0397\u0342\u0399 \u1FCC\u0397\u0399 "
    "\u1FD2\u0399\u0308\u0300 \u1FD3\u0399\u0308\u0301 \u1FD6\u0399\u0342 \u1FD7\u0399\u0308\u0342 "
    "\u1FE2\u03A5\u0308\u0300 \u1FE3\u03A5\u0308\u0301 \u1FE4\u03A1\u0313 \u1FE6\u03A5\u0342 "
    "\u1FE7\u03A5\u0308\u0342 \u1FF2\u1FFA\u0399 \u1FF3\u03A9\u0399 \u1FF4\u038F\u0399 \u1FF6\u03A9\u0342 "
    "\u1FF7\u03A9\u0342\u0399 \u1FFC\u03A9\u0399 \uFB00FF \uFB01FI \uFB02FL \uFB03FFI \uFB04FFL \uFB05ST "
    "\uFB06ST \uFB13\u0544\u0546 \uFB14\u0544\u0535 \uFB15\u0544\u053B \uFB16\u054E\u0546 \uFB17\u0544\u053D";
constexpr std::string_view kTitle =
    "\u00DFSs \u0149\u02BCN \u01F0J\u030C \u0390\u0399\u0308\u0301 \u03B0\u03A5\u0308\u0301 "
    "\u0587\u0535\u0582 \u1E96H\u0331 \u1E97T\u0308 \u1E98W\u030A \u1E99Y\u030A \u1E9AA\u02BE "
    "\u1F50\u03A5\u0313 \u1F52\u03A5\u0313\u0300 \u1F54\u03A5\u0313\u0301 \u1F56\u03A5\u0313\u0342 "
    "\u1FB2\u1FBA\u0345 \u1FB4\u0386\u0345 \u1FB6\u0391\u0342 \u1FB7\u0391\u0342\u0345 \u1FC2\u1FCA\u0345 "
    "\u1FC4\u0389\u0345 \u1FC6\u0397\u0342 \u1FC7\u0397\u0342\u0345 \u1FD2\u0399\u0308\u0300 "
    "\u1FD3\u0399\u0308\u0301 \u1FD6\u0399\u0342 \u1FD7\u0399\u0308\u0342 \u1FE2\u03A5\u0308\u0300 "
    "\u1FE3\u03A5\u0308\u0301 \u1FE4\u03A1\u0313 \u1FE6\u03A5\u0342 \u1FE7\u03A5\u0308\u0342 "
    "\u1FF2\u1FFA\u0345 \u1FF4\u038F\u0345 \u1FF6\u03A9\u0342 \u1FF7\u03A9\u0342\u0345 \uFB00Ff \uFB01Fi "
    "\uFB02Fl \uFB03Ffi \uFB04Ffl \uFB05St \uFB06St \uFB13\u0544\u0576 \uFB14\u0544\u0565 \uFB15\u0544\u056B "
    "\uFB16\u054E\u0576 \uFB17\u0544\u056D";

std::map<char32_t, std::string> parse_table(std::string_view table) {
  std::map<char32_t, std::string> out;
  for (const char *p = table.data(), *end = p + table.size(); p < end;) {
    const char32_t c = next_code_point(p);
    const char* from = p;
    while (p < end && *p != ' ') ++p;
    out.emplace(c, std::string(from, p));
    if (p < end) ++p;
  }
  return out;
}

int category(char32_t c) { return utf8proc_category(static_cast<utf8proc_int32_t>(c)); }
bool is_upper_char(char32_t c) { return category(c) == UTF8PROC_CATEGORY_LU; }
bool is_lower_char(char32_t c) { return category(c) == UTF8PROC_CATEGORY_LL; }
void append_upper(char32_t c, std::string& out) {
  static const std::map<char32_t, std::string> table = parse_table(kUpper);
  if (c < 0x80) {
    out += static_cast<char>(c >= 'a' && c <= 'z' ? c - 32 : c);
  } else if (auto it = table.find(c); it != table.end()) {
    out += it->second;
  } else {
    append_utf8(static_cast<char32_t>(utf8proc_toupper(static_cast<utf8proc_int32_t>(c))), out);
  }
}

void append_title(char32_t c, std::string& out) {
  static const std::map<char32_t, std::string> table = parse_table(kTitle);
  if (auto it = table.find(c); it != table.end())
    out += it->second;
  else
    append_utf8(static_cast<char32_t>(utf8proc_totitle(static_cast<utf8proc_int32_t>(c))), out);
}

bool is_line_end(char32_t c) {
  return (c >= 10 && c <= 13) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 || c == 0x2029;
}

bool contains(const std::u32string& set, char32_t c) { return set.find(c) != set.npos; }

}  // namespace

bool is_printable(char32_t c) {
  if (c == ' ') return true;
  switch (category(c)) {
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_ZS:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
      return false;
    default:
      return true;
  }
}

i64 code_points(std::string_view s) {
  i64 n = 0;
  for (char c : s) n += (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  return n;
}

std::size_t byte_of(std::string_view s, i64 index) {
  std::size_t i = 0;
  for (; i < s.size(); ++i) {
    if ((static_cast<unsigned char>(s[i]) & 0xC0) == 0x80) continue;
    if (index-- == 0) return i;
  }
  return i;
}

void spend_search(std::string_view s, std::string_view what) {
  spend(static_cast<i64>(s.size() / 64 + s.size() * what.size() / 512));
}

std::string_view strip_left(std::string_view s, std::optional<std::string_view> chars) {
  const std::u32string set = chars ? characters(*chars) : std::u32string();
  const char *p = s.data(), *end = p + s.size();
  while (p < end) {
    const char* next = p;
    const char32_t c = next_code_point(next);
    if (!(chars ? contains(set, c) : is_python_space(c))) break;
    p = next;
  }
  return s.substr(static_cast<std::size_t>(p - s.data()));
}

std::string_view strip_right(std::string_view s, std::optional<std::string_view> chars) {
  const std::u32string set = chars ? characters(*chars) : std::u32string();
  const char *begin = s.data(), *end = begin + s.size();
  while (end > begin) {
    const char* from = previous_character(begin, end);
    const char* p = from;
    const char32_t c = next_code_point(p);
    if (!(chars ? contains(set, c) : is_python_space(c))) break;
    end = from;
  }
  return s.substr(0, static_cast<std::size_t>(end - begin));
}

std::string upper(std::string_view s) {
  std::string out;
  for (const char *p = s.data(), *end = p + s.size(); p < end;) append_upper(next_code_point(p), out);
  return out;
}

std::string swapcase(std::string_view text) {
  const std::u32string s = characters(text);
  std::string out;
  for (std::size_t i = 0; i < s.size(); ++i) {
    if (is_upper_char(s[i]))
      append_lower(s, i, out);
    else if (is_lower_char(s[i]))
      append_upper(s[i], out);
    else
      append_utf8(s[i], out);
  }
  return out;
}

std::string capitalize(std::string_view text) {
  const std::u32string s = characters(text);
  std::string out;
  for (std::size_t i = 0; i < s.size(); ++i) {
    if (i == 0)
      append_title(s[0], out);
    else
      append_lower(s, i, out);
  }
  return out;
}

std::string title(std::string_view text) {
  const std::u32string s = characters(text);
  std::string out;
  bool inside = false;
  for (std::size_t i = 0; i < s.size(); ++i) {
    if (inside)
      append_lower(s, i, out);
    else
      append_title(s[i], out);
    inside = is_cased(s[i]);
  }
  return out;
}

std::string title_filter(std::string_view text) {
  std::string out;
  const char *p = text.data(), *end = p + text.size();
  auto is_separator = [](char32_t c) {
    return is_python_space(c) || c == '-' || c == '(' || c == '{' || c == '[' || c == '<';
  };
  while (p < end) {
    const char* from = p;
    const char32_t first = next_code_point(p);
    const bool separator = is_separator(first);
    const char* rest = p;
    while (p < end) {
      const char* next = p;
      if (is_separator(next_code_point(next)) != separator) break;
      p = next;
    }
    if (separator) {
      out.append(from, p);
    } else {
      append_upper(first, out);
      out += python_lower(std::string_view(rest, static_cast<std::size_t>(p - rest)));
    }
  }
  return out;
}

std::vector<std::string_view> split(std::string_view s, std::optional<std::string_view> separator, i64 most,
                                    bool from_right) {
  std::vector<std::string_view> out;
  if (most < 0) most = std::numeric_limits<i64>::max();
  auto cut = [&](std::string_view piece) {
    spend(1);
    out.push_back(piece);
  };
  if (separator) {
    const std::string_view sep = *separator;
    spend_search(s, sep);
    while (most-- > 0) {
      const std::size_t at = from_right ? s.rfind(sep) : s.find(sep);
      if (at == s.npos) break;
      if (from_right) {
        cut(s.substr(at + sep.size()));
        s = s.substr(0, at);
      } else {
        cut(s.substr(0, at));
        s = s.substr(at + sep.size());
      }
    }
    cut(s);
  } else if (from_right) {
    while (!(s = strip_right(s)).empty()) {
      if (most-- <= 0) {
        cut(s);
        break;
      }
      const char *begin = s.data(), *p = begin + s.size();
      while (p > begin) {
        const char* from = previous_character(begin, p);
        const char* next = from;
        if (is_python_space(next_code_point(next))) break;
        p = from;
      }
      const auto at = static_cast<std::size_t>(p - begin);
      cut(s.substr(at));
      s = s.substr(0, at);
    }
  } else {
    while (!(s = strip_left(s)).empty()) {
      if (most-- <= 0) {
        cut(s);
        break;
      }
      const char *p = s.data(), *end = p + s.size();
      while (p < end) {
        const char* next = p;
        if (is_python_space(next_code_point(next))) break;
        p = next;
      }
      const auto at = static_cast<std::size_t>(p - s.data());
      cut(s.substr(0, at));
      s = s.substr(at);
    }
  }
  if (from_right) out = {out.rbegin(), out.rend()};
  return out;
}

std::vector<std::string_view> split_lines(std::string_view s, bool keep_ends) {
  std::vector<std::string_view> out;
  const char *p = s.data(), *end = p + s.size(), *line = p;
  while (p < end) {
    const char* stop = p;
    const char32_t c = next_code_point(p);
    if (!is_line_end(c)) continue;
    if (c == '\r' && p < end && *p == '\n') ++p;
    out.emplace_back(line, static_cast<std::size_t>((keep_ends ? p : stop) - line));
    line = p;
  }
  if (line < end) out.emplace_back(line, static_cast<std::size_t>(end - line));
  return out;
}

std::string replace(std::string_view s, std::string_view from, std::string_view to, i64 most) {
  if (most < 0) most = std::numeric_limits<i64>::max();
  std::string out;
  auto put = [&](std::string_view piece) {
    out += piece;
    if (budget() && static_cast<i64>(out.size()) > budget()->most)
      throw Failure("the template's values take too much memory");
  };
  if (from.empty()) {  // matches between all characters
    const char *p = s.data(), *end = p + s.size();
    while (p < end && most > 0) {
      const char* start = p;
      next_code_point(p);
      --most;
      put(to);
      out.append(start, p);
    }
    out.append(p, end);
    if (p == end && most > 0) put(to);
    return out;
  }
  spend_search(s, from);
  while (most-- > 0) {
    const std::size_t at = s.find(from);
    if (at == s.npos) break;
    put(s.substr(0, at));
    put(to);
    s = s.substr(at + from.size());
  }
  out += s;
  return out;
}

bool all_are(std::string_view s, TextTest test) {
  if (s.empty()) return test == TextTest::ascii || test == TextTest::printable;
  for (const char *p = s.data(), *end = p + s.size(); p < end;) {
    const char32_t c = next_code_point(p);
    const int k = category(c);
    const bool alpha = k == UTF8PROC_CATEGORY_LU || k == UTF8PROC_CATEGORY_LL || k == UTF8PROC_CATEGORY_LT ||
                       k == UTF8PROC_CATEGORY_LM || k == UTF8PROC_CATEGORY_LO;
    const bool decimal = k == UTF8PROC_CATEGORY_ND;
    const bool digit =
        decimal || (k == UTF8PROC_CATEGORY_NO &&
                    ((c >= 0xB2 && c <= 0xB3) || c == 0xB9 || c == 0x2070 || (c >= 0x2074 && c <= 0x2079)));
    const bool numeric = decimal || k == UTF8PROC_CATEGORY_NL || k == UTF8PROC_CATEGORY_NO;
    bool is = false;
    switch (test) {
      case TextTest::alpha:
        is = alpha;
        break;
      case TextTest::digit:
        is = digit;
        break;
      case TextTest::decimal:
        is = decimal;
        break;
      case TextTest::alnum:
        is = alpha || numeric;
        break;
      case TextTest::space:
        is = is_python_space(c);
        break;
      case TextTest::ascii:
        is = c < 0x80;
        break;
      case TextTest::printable:
        is = is_printable(c);
        break;
    }
    if (!is) return false;
  }
  return true;
}

namespace {
bool has_case(std::string_view s, bool upper) {
  bool any = false;
  for (const char *p = s.data(), *end = p + s.size(); p < end;) {
    const char32_t c = next_code_point(p);
    if (category(c) == UTF8PROC_CATEGORY_LT || (upper ? is_lower_char(c) : is_upper_char(c))) return false;
    any = any || is_cased(c);
  }
  return any;
}
}  // namespace

bool is_lower(std::string_view s) { return has_case(s, false); }
bool is_upper(std::string_view s) { return has_case(s, true); }

}  // namespace redco::jinja
