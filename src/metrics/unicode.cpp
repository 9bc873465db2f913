#include "metrics/unicode.h"

#include <utf8proc.h>

namespace redco {

namespace {

// The character at text[at] and its bytes.
struct Step {
  char32_t c;
  size_t bytes;
};
Step step(std::string_view text, size_t at) {
  utf8proc_int32_t c = -1;
  const auto n = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()) + at,
                                  static_cast<utf8proc_ssize_t>(std::min<size_t>(4, text.size() - at)), &c);
  if (n <= 0 || c < 0) return {0xfffd, 1};
  return {static_cast<char32_t>(c), static_cast<size_t>(n)};
}

void append(std::string& out, char32_t c) {
  utf8proc_uint8_t bytes[4];
  const auto n = utf8proc_encode_char(static_cast<utf8proc_int32_t>(c), bytes);
  out.append(reinterpret_cast<char*>(bytes), static_cast<size_t>(n));
}

bool is_cased(char32_t c) {
  const auto category = utf8proc_category(static_cast<utf8proc_int32_t>(c));
  return category == UTF8PROC_CATEGORY_LU || category == UTF8PROC_CATEGORY_LL ||
         category == UTF8PROC_CATEGORY_LT;
}
// Word_Break=MidLetter and the like: what may stand inside a word.
bool is_case_ignorable(char32_t c) {
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(c))) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_SK:
      return true;
    default:
      return c == '\'' || c == '.' || c == ':' || c == 0xb7 || c == 0x2018 || c == 0x2019 || c == 0x2024 ||
             c == 0x2027;
  }
}

// Unicode's Final_Sigma: a cased letter before, none after.
bool is_final_sigma(const std::u32string& s, size_t i) {
  size_t before = i;
  while (before > 0 && is_case_ignorable(s[before - 1])) --before;
  if (before == 0 || !is_cased(s[before - 1])) return false;
  size_t after = i + 1;
  while (after < s.size() && is_case_ignorable(s[after])) ++after;
  return after == s.size() || !is_cased(s[after]);
}

}  // namespace

std::u32string characters(std::string_view text) {
  std::u32string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const Step s = step(text, at);
    out.push_back(s.c);
    at += s.bytes;
  }
  return out;
}

bool is_python_space(char32_t c) {
  if (c < 0x80) return c == ' ' || (c >= 0x09 && c <= 0x0d) || (c >= 0x1c && c <= 0x1f);
  return c == 0x85 || c == 0xa0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200a) || c == 0x2028 ||
         c == 0x2029 || c == 0x202f || c == 0x205f || c == 0x3000;
}

std::vector<std::string> python_split(std::string_view text) {
  std::vector<std::string> out;
  size_t begin = std::string_view::npos;
  for (size_t at = 0; at < text.size();) {
    const Step s = step(text, at);
    const bool space = is_python_space(s.c);
    if (!space && begin == std::string_view::npos) begin = at;
    if (space && begin != std::string_view::npos) {
      out.emplace_back(text.substr(begin, at - begin));
      begin = std::string_view::npos;
    }
    at += s.bytes;
  }
  if (begin != std::string_view::npos) out.emplace_back(text.substr(begin));
  return out;
}

std::string python_lower(std::string_view text) {
  const std::u32string s = characters(text);
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < s.size(); ++i) {
    if (s[i] < 0x80) {
      out.push_back(static_cast<char>(s[i] >= 'A' && s[i] <= 'Z' ? s[i] + 32 : s[i]));
    } else if (s[i] == 0x130) {
      append(out, 'i');
      append(out, 0x307);
    } else if (s[i] == 0x3a3 && is_final_sigma(s, i)) {
      append(out, 0x3c2);
    } else {
      append(out, static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(s[i]))));
    }
  }
  return out;
}

}  // namespace redco
