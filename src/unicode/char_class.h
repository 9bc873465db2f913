// Character classes as regular expressions (regex.h) have them, so that hand-written splitters agree with
// them on every character.
#pragma once

#include <cstdint>

namespace redco {

enum CharClass : std::uint8_t {
  kLetter = 1,       // \p{L}
  kNumber = 2,       // \p{N}
  kSpace = 4,        // \s, Unicode White_Space
  kWord = 8,         // \w: alphabetic, marks, decimal digits, connector punctuation
  kPunctuation = 16  // \p{P}
};

// kClasses[c] for every code point up to U+10FFFF; built once, thread-safe, never freed.
const std::uint8_t* char_classes();

}  // namespace redco
