// Character classes with the members that regular expressions (regex.h) give them. Hand-written splitters use
// them and so agree with the regular expressions on every character.
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

// A table of CharClass bits, indexed by code point up to U+10FFFF. Built once, thread-safe, never freed.
const std::uint8_t* char_classes();

}  // namespace redco
