// The seed pieces of Unigram training: the frequent substrings of words.
#pragma once

#include <string_view>
#include <vector>

#include "base/types.h"
#include "tokenizers/train/train_text.h"

namespace redco {

// The words as arrays of character numbers. A character's number is its index in `alphabet` (sorted) plus 1;
// 0 ends a word. A character outside of the alphabet ends a word too. Words longer than kMaxWord are split.
struct CharWords {
  static constexpr u32 kMaxWord = 256;

  std::vector<u32> chars;   // all words, each ends with a 0
  std::vector<u32> begins;  // start of each word in chars
  std::vector<u64> counts;  // count of each word
  std::vector<char32_t> alphabet;
  std::vector<u64> char_counts;  // count of each character of the alphabet

  std::size_t size() const { return begins.size(); }
  u32 length(std::size_t w) const {
    return (w + 1 < begins.size() ? begins[w + 1] : static_cast<u32>(chars.size())) - begins[w] - 1;
  }
};

// The alphabet has the characters with a count of at least min_count, and those of `always`. ContentsError
// for distinct words with more than 2^32 - 1 characters.
CharWords char_words(const WordCounts& words, u64 min_count, std::string_view always = "");

// The substring chars[begin, begin + length), and its count in the text.
struct Seed {
  u32 begin, length;
  u64 count;
};

// Substrings of 2 to max_length characters that occur at least twice and are not always followed by the same
// character, and whole words that occur at least twice. Returns the `most` ones with the largest count x
// length, ties by their text. They come from a suffix array, which `threads` threads sort; the result doesn't
// depend on `threads`.
std::vector<Seed> frequent_substrings(const CharWords& words, u32 max_length, std::size_t most, int threads);

}  // namespace redco
