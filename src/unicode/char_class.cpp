#include "unicode/char_class.h"

#include <oniguruma.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#include "base/error.h"
#include "unicode/regex.h"
#include "unicode/regex_classes.h"
#include "unicode/tables.h"

namespace redco {
namespace {

constexpr std::uint32_t kCodePoints = 0x110000;

const std::uint8_t* build_classes() {
  initialize_oniguruma();
  // calloc: pages without any class (most of the planes) are never written, so they use no memory.
  auto* table = static_cast<std::uint8_t*>(std::calloc(kCodePoints, 1));
  if (table == nullptr) throw std::bad_alloc();
  OnigEncoding utf8 = ONIG_ENCODING_UTF8;
  auto mark = [&](const char* property, std::uint8_t bit) {
    auto* name = const_cast<OnigUChar*>(reinterpret_cast<const OnigUChar*>(property));
    const int ctype = utf8->property_name_to_ctype(utf8, name, name + std::strlen(property));
    REDCO_CHECK(ctype >= 0, "Oniguruma doesn't know the property {}", property);
    OnigCodePoint single_byte_end = 0;
    const OnigCodePoint* ranges = nullptr;
    const int r = utf8->get_ctype_code_range(static_cast<OnigCtype>(ctype), &single_byte_end, &ranges);
    REDCO_CHECK(r == 0 && ranges != nullptr, "no code ranges for the property {}", property);
    for (OnigCodePoint k = 0; k < ranges[0]; ++k) {
      const OnigCodePoint from = ranges[1 + 2 * k], to = std::min(ranges[2 + 2 * k], kCodePoints - 1);
      for (OnigCodePoint c = from; c <= to; ++c) table[c] |= bit;
    }
  };
  mark("L", kLetter);
  mark("N", kNumber);
  mark("Space", kSpace);
  mark("Word", kWord);
  mark("P", kPunctuation);
  constexpr std::pair<const char*, std::uint8_t> kBits[] = {
      {"L", kLetter}, {"N", kNumber}, {"Word", kWord}, {"P", kPunctuation}};
  for (std::size_t k = 0; k < kSizeNewer; ++k)
    for (const auto& [name, bit] : kBits)
      if (category_is_in(kTableNewer[k].category, name))
        for (char32_t c = kTableNewer[k].first; c <= kTableNewer[k].last; ++c) table[c] |= bit;
  return table;
}

}  // namespace

const std::uint8_t* char_classes() {
  static const std::uint8_t* table = build_classes();
  return table;
}

}  // namespace redco
