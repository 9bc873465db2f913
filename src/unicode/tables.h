// Properties of code points in Hugging Face's tokenizers library, as sorted ranges.
// scripts/make_unicode_tables.py generates the .cpp file. hf_chars.h has the look-up functions.
#pragma once

#include <cstddef>
#include <cstdint>

namespace redco {

struct CodeRange {
  char32_t first, last;
};

// For every step-th code point c in first..last, the lower case of c is c + delta.
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
