#include "unicode/python_text.h"

#include <utf8proc.h>

#include "base/utf8.h"

namespace redco {

namespace {

int category(char32_t c) { return utf8proc_category(static_cast<utf8proc_int32_t>(c)); }

// Unicode's Case_Ignorable: marks, format characters, modifiers, and the characters with Word_Break =
// MidLetter, MidNumLet or Single_Quote.
bool is_case_ignorable(char32_t c) {
  switch (category(c)) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_SK:
      return true;
    default: {
      constexpr std::u32string_view kInsideWords =
          U"'.:\u00B7\u0387\u055F\u05F4\u2018\u2019\u2024\u2027\uFE13\uFE52\uFE55\uFF07\uFF0E\uFF1A";
      return kInsideWords.find(c) != kInsideWords.npos;
    }
  }
}

// Unicode's Final_Sigma: a cased letter precedes s[i] and none follows. The lower case is then ς.
bool is_final_sigma(const std::u32string& s, std::size_t i) {
  std::size_t j = i;
  while (j > 0 && is_case_ignorable(s[j - 1])) --j;
  if (j == 0 || !is_cased(s[j - 1])) return false;
  j = i + 1;
  while (j < s.size() && is_case_ignorable(s[j])) ++j;
  return j == s.size() || !is_cased(s[j]);
}

}  // namespace

std::u32string characters(std::string_view text) {
  std::string repaired;
  if (find_invalid_utf8(text) != std::string_view::npos) text = repaired = utf8_lossy(text);
  std::u32string out;
  out.reserve(text.size());
  for (const char *p = text.data(), *end = p + text.size(); p < end;) out += next_code_point(p);
  return out;
}

bool is_python_space(char32_t c) {
  return (c >= 9 && c <= 13) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F ||
         c == 0x3000;
}

bool is_cased(char32_t c) {
  const int k = category(c);
  return k == UTF8PROC_CATEGORY_LU || k == UTF8PROC_CATEGORY_LL || k == UTF8PROC_CATEGORY_LT;
}

void append_lower(const std::u32string& s, std::size_t i, std::string& out) {
  const char32_t c = s[i];
  if (c < 0x80)
    out += static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
  else if (c == 0x130)
    out += "i\xCC\x87";
  else if (c == 0x3A3)
    append_utf8(is_final_sigma(s, i) ? 0x3C2 : 0x3C3, out);
  else
    append_utf8(static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c))), out);
}

std::string python_lower(std::string_view text) {
  const std::u32string s = characters(text);
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < s.size(); ++i) append_lower(s, i, out);
  return out;
}

std::vector<std::string> python_split(std::string_view text) {
  std::vector<std::string> out;
  std::string word;
  for (const char32_t c : characters(text)) {
    if (!is_python_space(c)) {
      append_utf8(c, word);
    } else if (!word.empty()) {
      out.push_back(std::move(word));
      word.clear();
    }
  }
  if (!word.empty()) out.push_back(std::move(word));
  return out;
}

}  // namespace redco
