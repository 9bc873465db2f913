// What Hugging Face's tokenizers takes each code point for, as sorted ranges; see
// scripts/make_unicode_tables.py, which makes the .cpp. hf_chars.h is the way to look things up.
#pragma once

#include <cstddef>
#include <cstdint>

namespace redco {

struct CodeRange {
  char32_t first, last;
};

// Every step-th code point of first..last has the lower case `delta` further on.
struct LowerRun {
  char32_t first, last;
  std::int32_t step, delta;
};

struct ScriptRun {
  char32_t first, last;
  int script;
};

// Code points that Unicode 14 (Oniguruma 6.9.8) lacks.
struct CategoryRun {
  char32_t first, last;
  const char* category;  // Lu, Nd, ...
};

extern const CodeRange kTableNumeric[], kTableWord[], kTablePunctuation[], kTableOther[], kTableNonspacing[],
    kTableMark[], kTableExtends[], kTablePrepends[], kTableConsonants[], kTableLinkers[], kTableNormalizing[];
extern const std::size_t kSizeNumeric, kSizeWord, kSizePunctuation, kSizeOther, kSizeNonspacing, kSizeMark,
    kSizeExtends, kSizePrepends, kSizeConsonants, kSizeLinkers, kSizeNormalizing;
extern const LowerRun kTableLower[];
extern const std::size_t kSizeLower;
extern const ScriptRun kTableScripts[];
extern const std::size_t kSizeScripts;
extern const CategoryRun kTableNewer[];
extern const CodeRange kTableNewerHan[];
extern const std::size_t kSizeNewer, kSizeNewerHan;

}  // namespace redco
