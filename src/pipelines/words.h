// Texts as words with tokens: what labels of words and spans of characters need.
//
// A word is a maximal run of letters, digits and other characters without white space and punctuation, or one
// character of punctuation; words of a given list stay whole. Each word is tokenized alone, with a blank in
// front unless it begins the text or follows another word directly, as tokenizers cut there anyway. Positions
// in texts are code points, as in Python.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/types.h"
#include "tokenizers/tokenizer.h"

namespace redco {

struct Word {
  std::string text;
  i64 begin = 0, end = 0;  // code points [begin, end) of the text; of a given list: the index and the next
  bool joined = false;     // follows the word before directly
};

std::vector<Word> words_of_text(std::string_view text);  // REQUIRES valid UTF-8
std::vector<Word> words_of_list(const std::vector<std::string>& words);

// The tokens of words, without special tokens; first[w] is the index of the first token of word w, and
// first[words] the number of tokens. A word without tokens (a control character) has none.
struct WordTokens {
  std::vector<i32> ids;
  std::vector<i32> first;
};
WordTokens tokens_of_words(const Tokenizer& tokenizer, std::span<const Word> words);

// The special tokens in front of a text and behind it.
struct TextFrame {
  std::vector<i32> before, after;
};
TextFrame text_frame(const Tokenizer& tokenizer);

// The text of code points [begin, end).
std::string text_between(std::string_view text, i64 begin, i64 end);

}  // namespace redco
