#include "unicode/regex_classes.h"

#include <oniguruma.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <vector>

#include "base/error.h"
#include "unicode/tables.h"

namespace redco {
namespace {

// The classes that have newer characters, with all their names in patterns. Oniguruma allows up to 20
// user-defined properties.
struct Class {
  const char* name;
  const char* alias;
};
constexpr Class kClasses[] = {{"L", "letter"},
                              {"Lu", "uppercaseletter"},
                              {"Ll", "lowercaseletter"},
                              {"Lm", "modifierletter"},
                              {"Lo", "otherletter"},
                              {"M", "mark"},
                              {"Mn", "nonspacingmark"},
                              {"Mc", "spacingmark"},
                              {"N", "number"},
                              {"Nd", "decimalnumber"},
                              {"No", "othernumber"},
                              {"P", "punctuation"},
                              {"Pd", "dashpunctuation"},
                              {"Po", "otherpunctuation"},
                              {"S", "symbol"},
                              {"Sm", "mathsymbol"},
                              {"So", "othersymbol"},
                              {"Cf", "format"},
                              {"Word", "w"},
                              {"Han", "hani"}};

std::string own_name(const Class& c) { return "redco" + std::string(c.name); }

// A name in the form that Oniguruma compares.
std::string folded(std::string_view name) {
  std::string out;
  for (char c : name)
    if (c != ' ' && c != '_' && c != '-')
      out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

const Class* find_class(std::string_view name) {
  const std::string f = folded(name);
  for (const Class& c : kClasses)
    if (f == folded(c.name) || f == c.alias) return &c;
  return nullptr;
}

// The number of ranges, then the ranges: Oniguruma's format. Never freed.
OnigCodePoint* ranges_of(const Class& c) {
  OnigEncoding utf8 = ONIG_ENCODING_UTF8;
  auto* name = const_cast<OnigUChar*>(reinterpret_cast<const OnigUChar*>(c.name));
  const int ctype = utf8->property_name_to_ctype(utf8, name, name + std::strlen(c.name));
  REDCO_CHECK(ctype >= 0, "Oniguruma doesn't know the property {}", c.name);
  OnigCodePoint single_byte_end = 0;
  const OnigCodePoint* known = nullptr;
  const int r = utf8->get_ctype_code_range(static_cast<OnigCtype>(ctype), &single_byte_end, &known);
  REDCO_CHECK(r == 0 && known != nullptr, "no code ranges for the property {}", c.name);
  std::vector<std::pair<OnigCodePoint, OnigCodePoint>> all;
  for (OnigCodePoint k = 0; k < known[0]; ++k) all.emplace_back(known[1 + 2 * k], known[2 + 2 * k]);
  if (std::string_view(c.name) == "Han")
    for (std::size_t k = 0; k < kSizeNewerHan; ++k)
      all.emplace_back(kTableNewerHan[k].first, kTableNewerHan[k].last);
  else
    for (std::size_t k = 0; k < kSizeNewer; ++k)
      if (category_is_in(kTableNewer[k].category, c.name))
        all.emplace_back(kTableNewer[k].first, kTableNewer[k].last);
  std::sort(all.begin(), all.end());
  std::vector<std::pair<OnigCodePoint, OnigCodePoint>> merged;
  for (const auto& [first, last] : all) {
    if (!merged.empty() && first <= merged.back().second + 1)
      merged.back().second = std::max(merged.back().second, last);
    else
      merged.emplace_back(first, last);
  }
  auto* out = new OnigCodePoint[1 + 2 * merged.size()];
  out[0] = static_cast<OnigCodePoint>(merged.size());
  for (std::size_t k = 0; k < merged.size(); ++k) {
    out[1 + 2 * k] = merged[k].first;
    out[2 + 2 * k] = merged[k].second;
  }
  return out;
}

}  // namespace

bool category_is_in(std::string_view category, std::string_view name) {
  if (name == "Word")
    return category[0] == 'L' || category[0] == 'M' || category == "Nd" || category == "Nl" ||
           category == "Pc";
  return category.starts_with(name);
}

void define_newer_properties() {
  for (const Class& c : kClasses) {
    const int r = onig_unicode_define_user_property(own_name(c).c_str(), ranges_of(c));
    REDCO_CHECK(r == ONIG_NORMAL, "onig_unicode_define_user_property({}): {}", c.name, r);
  }
}

std::string with_newer_characters(std::string_view pattern) {
  std::string out;
  for (std::size_t k = 0; k < pattern.size(); ++k) {
    out += pattern[k];
    if (pattern[k] != '\\' || k + 1 == pattern.size()) continue;
    const char c = pattern[++k];
    out += c;
    if (c == 'w' || c == 'W' || c == 'd' || c == 'D') {
      out.back() = c == 'w' || c == 'd' ? 'p' : 'P';
      out += "{" + own_name(*find_class(c == 'w' || c == 'W' ? "Word" : "Nd")) + "}";
    } else if ((c == 'p' || c == 'P') && k + 1 < pattern.size() && pattern[k + 1] == '{') {
      const std::size_t end = pattern.find('}', k);
      if (end == std::string_view::npos) continue;
      std::string_view name = pattern.substr(k + 2, end - k - 2);
      const bool negated = name.starts_with('^');
      if (negated) name.remove_prefix(1);
      const Class* known = find_class(name);
      if (known == nullptr) continue;
      out += (negated ? "{^" : "{") + own_name(*known) + "}";
      k = end;
    }
  }
  return out;
}

}  // namespace redco
