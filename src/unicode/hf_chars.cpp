#include "unicode/hf_chars.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <new>

#include "base/utf8.h"
#include "unicode/tables.h"

namespace redco {
namespace {

const std::uint8_t* build_hf_classes() {
  // calloc: pages without any class are never written, so they use no memory.
  auto* table = static_cast<std::uint8_t*>(std::calloc(0x110000, 1));
  if (table == nullptr) throw std::bad_alloc();
  auto mark = [&](const CodeRange* ranges, std::size_t n, std::uint8_t bit) {
    for (std::size_t k = 0; k < n; ++k)
      for (char32_t c = ranges[k].first; c <= ranges[k].last; ++c) table[c] |= bit;
  };
  mark(kTableNumeric, kSizeNumeric, kHfNumeric);
  mark(kTableWord, kSizeWord, kHfWord);
  mark(kTablePunctuation, kSizePunctuation, kHfPunctuation);
  mark(kTableOther, kSizeOther, kHfOther);
  mark(kTableNonspacing, kSizeNonspacing, kHfNonspacing);
  mark(kTableMark, kSizeMark, kHfMark);
  mark(kTableExtends, kSizeExtends, kHfExtends);
  mark(kTableNormalizing, kSizeNormalizing, kHfNormalizing);
  return table;
}

// The run that contains `c`, or nullptr.
template <class Run>
const Run* find(const Run* runs, std::size_t n, char32_t c) {
  const Run* after =
      std::upper_bound(runs, runs + n, c, [](char32_t x, const Run& r) { return x < r.first; });
  return after != runs && c <= after[-1].last ? after - 1 : nullptr;
}

char32_t lower(char32_t c) {
  const LowerRun* run = find(kTableLower, kSizeLower, c);
  if (run == nullptr || (c - run->first) % static_cast<char32_t>(run->step) != 0) return c;
  return static_cast<char32_t>(static_cast<std::int32_t>(c) + run->delta);
}

constexpr char32_t kSmall = 0x600;  // Latin, Greek, Cyrillic, Armenian, Hebrew: in a table, for speed

std::array<char32_t, kSmall> small_lower() {
  std::array<char32_t, kSmall> table{};
  for (char32_t c = 0; c < kSmall; ++c) table[c] = lower(c);
  return table;
}

// A code point that has in utf8proc the grapheme break property that `c` has in Hugging Face's library.
// utf8proc's tables may be of another version of Unicode.
utf8proc_int32_t breaking_like(char32_t c) {
  const auto same = static_cast<utf8proc_int32_t>(c);
  if (c < 0x300) return same;
  const auto boundary = utf8proc_get_property(same)->boundclass;
  const bool extending = boundary == UTF8PROC_BOUNDCLASS_EXTEND ||
                         boundary == UTF8PROC_BOUNDCLASS_SPACINGMARK || boundary == UTF8PROC_BOUNDCLASS_ZWJ;
  if (((hf_classes()[c] & kHfExtends) != 0) != extending) return extending ? 'a' : 0x300;
  if ((boundary == UTF8PROC_BOUNDCLASS_PREPEND) != (find(kTablePrepends, kSizePrepends, c) != nullptr))
    return boundary == UTF8PROC_BOUNDCLASS_PREPEND ? 'a' : 0x600;
  return same;
}

// Consonants of Indian scripts with a linker between them are one cluster (rule GB9c).
struct Conjunct {
  bool consonant = false, linked = false;
  void see(char32_t c) {
    if (find(kTableConsonants, kSizeConsonants, c) != nullptr) {
      consonant = true;
      linked = false;
    } else if (find(kTableLinkers, kSizeLinkers, c) != nullptr) {
      linked = consonant;
    } else if (!(hf_classes()[c] & kHfExtends)) {
      consonant = linked = false;
    }
  }
  bool joins(char32_t c) const { return linked && find(kTableConsonants, kSizeConsonants, c) != nullptr; }
};

}  // namespace

const std::uint8_t* hf_classes() {
  static const std::uint8_t* table = build_hf_classes();
  return table;
}

void append_lower(char32_t c, std::string& out) {
  static const std::array<char32_t, kSmall> small = small_lower();
  if (c == 0x130)
    out += "i\xCC\x87";
  else
    append_utf8(c < kSmall ? small[c] : lower(c), out);
}

int script_of(char32_t c) {
  const ScriptRun* run = find(kTableScripts, kSizeScripts, c);
  return run == nullptr ? 0 : run->script;
}

const char* end_of_cluster(const char* p, const char* end) {
  const bool carriage_return = *p == '\r';
  char32_t before = next_code_point(p);
  if (p == end) return p;
  // Below U+0300 only the line feed of CR LF extends a cluster.
  if (static_cast<unsigned char>(*p) < 0xCC && before < 0x300)
    return carriage_return && *p == '\n' ? p + 1 : p;
  utf8proc_int32_t state = 0;
  Conjunct conjunct;
  conjunct.see(before);
  while (p < end) {
    const char* q = p;
    const char32_t c = next_code_point(q);
    const bool joins = conjunct.joins(c);  // utf8proc has this rule only from Unicode 15.1 on
    if (utf8proc_grapheme_break_stateful(breaking_like(before), breaking_like(c), &state) && !joins) break;
    conjunct.see(c);
    before = c;
    p = q;
  }
  return p;
}

}  // namespace redco
