// Characters as the parts of Hugging Face's tokenizers see them (its Rust crates, each with the tables of
// another version of Unicode). What regular expressions of a tokenizer.json see is char_class.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace redco {

enum HfClass : std::uint8_t {
  kHfNumeric = 1,       // what Digits splits at
  kHfWord = 2,          // \w of Whitespace and of added tokens' single_word
  kHfPunctuation = 4,   // what Punctuation and BertPreTokenizer split at
  kHfOther = 8,         // control and other characters that BertNormalizer cleans away
  kHfNonspacing = 16,   // accents that BertNormalizer strips
  kHfMark = 32,         // marks that StripAccents strips
  kHfExtends = 64,      // belongs to the grapheme cluster of the character before it
  kHfNormalizing = 128  // has a canonical or compatibility decomposition, or a combining class
};

// hf_classes()[c] for every code point up to U+10FFFF; built once, thread-safe, never freed.
const std::uint8_t* hf_classes();

// Appends the lower case of `c`: one character, but two for U+0130.
void append_lower(char32_t c, std::string& out);

// A number of the script of `c` as UnicodeScripts has it (Hiragana and Katakana count as Han), 0 for none.
int script_of(char32_t c);

// The end of the extended grapheme cluster that starts at p. REQUIRES p < end and valid UTF-8.
const char* end_of_cluster(const char* p, const char* end);

}  // namespace redco
