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

extern const CodeRange kTableNumeric[], kTableWord[], kTablePunctuation[], kTableOther[], kTableNonspacing[], kTableMark[], kTableExtends[],
    kTablePrepends[], kTableNormalizing[];
extern const std::size_t kSizeNumeric, kSizeWord, kSizePunctuation, kSizeOther, kSizeNonspacing, kSizeMark, kSizeExtends,
    kSizePrepends, kSizeNormalizing;
extern const LowerRun kTableLower[];
extern const std::size_t kSizeLower;
extern const ScriptRun kTableScripts[];
extern const std::size_t kSizeScripts;

}  // namespace redco
