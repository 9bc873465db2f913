// Character classes of Hugging Face's tokenizers library. Its Rust crates have tables of different versions
// of Unicode. Regular expressions of a tokenizer.json use the classes of char_class.h instead.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace redco {

enum HfClass : std::uint8_t {
  kHfNumeric = 1,       // Digits splits at these
  kHfWord = 2,          // \w of Whitespace and of added tokens' single_word
  kHfPunctuation = 4,   // Punctuation and BertPreTokenizer split at these
  kHfOther = 8,         // control and other characters that BertNormalizer removes
  kHfNonspacing = 16,   // accents that BertNormalizer strips
  kHfMark = 32,         // marks that StripAccents strips
  kHfExtends = 64,      // belongs to the grapheme cluster of the character before it
  kHfNormalizing = 128  // has a canonical or compatibility decomposition, or a combining class
};

// A table of these bits, indexed by code point up to U+10FFFF. Built once, thread-safe, never freed.
const std::uint8_t* hf_classes();

// Appends the lower case of `c`: one character, but two for U+0130.
void append_lower(char32_t c, std::string& out);

// The number of the script of `c` in the UnicodeScripts pre-tokenizer (Hiragana and Katakana count as Han); 0
// if it has none.
int script_of(char32_t c);

// The end of the extended grapheme cluster that starts at p. REQUIRES p < end and valid UTF-8.
const char* end_of_cluster(const char* p, const char* end);

}  // namespace redco
