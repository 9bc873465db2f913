// Where Unigram training starts from: the substrings of words that are there more than once.
#pragma once

#include <string_view>
#include <vector>

#include "base/types.h"
#include "tokenizers/train/train_text.h"

namespace redco {

// The words as characters. A character is its place in `alphabet` (sorted) plus 1; 0 ends a word. Characters
// left out of the alphabet end a word, too, and words longer than kMaxWord are cut.
struct CharWords {
  static constexpr u32 kMaxWord = 256;

  std::vector<u32> chars;   // all words, a 0 behind each
  std::vector<u32> begins;  // of each word in chars
  std::vector<u64> counts;  // of each word
  std::vector<char32_t> alphabet;
  std::vector<u64> char_counts;  // of each of the alphabet

  std::size_t size() const { return begins.size(); }
  u32 length(std::size_t w) const {
    return (w + 1 < begins.size() ? begins[w + 1] : static_cast<u32>(chars.size())) - begins[w] - 1;
  }
};

// min_count: characters that are there less often are left out, but for those of `always`, which are in the
// alphabet even if the text has none. ContentsError for more than 2^32 - 1 characters of distinct words.
CharWords char_words(const WordCounts& words, u64 min_count, std::string_view always = "");

// The characters chars[begin, begin + length), and how often they follow each other in the text.
struct Seed {
  u32 begin, length;
  u64 count;
};

// The substrings of 2 to max_length characters that are seen at least twice and not always followed by the
// same character, and the words themselves; the `most` with the largest count x length, ties by their text.
// Found in an array of all suffixes, sorted by `threads` threads; the result is the same for any number.
std::vector<Seed> frequent_substrings(const CharWords& words, u32 max_length, std::size_t most, int threads);

}  // namespace redco
