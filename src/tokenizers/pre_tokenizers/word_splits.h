// Hand-written matchers of the split patterns that nearly all byte-level tokenizers use. They give the same
// pieces as Oniguruma (tests/tokenizers/word_splits_test.cpp compares them on random text) and are several
// times faster.
#pragma once

#include <optional>
#include <string_view>

namespace redco {

enum class WordSplit {
  gpt2,    // the pattern built into the ByteLevel pre-tokenizer
  llama3,  // numbers in groups of up to three digits
  qwen,    // the same with single digits
};

// The text of the pattern.
std::string_view pattern_of(WordSplit kind);

// The kind whose pattern is exactly `pattern`, or nullopt.
std::optional<WordSplit> known_pattern(std::string_view pattern);

// The end of the piece that starts at `p`. REQUIRES p < end, valid UTF-8, and p at the start of a piece. The
// pieces cover the whole text.
const char* end_of_gpt2_piece(const char* p, const char* end, const unsigned char* classes);
const char* end_of_llama3_piece(const char* p, const char* end, const unsigned char* classes, int max_digits);

// Calls f(piece) for each piece of `text`, in order.
template <class F>
void split_words(WordSplit kind, std::string_view text, const unsigned char* classes, F&& f) {
  const char* p = text.data();
  const char* end = p + text.size();
  while (p < end) {
    const char* q = kind == WordSplit::gpt2     ? end_of_gpt2_piece(p, end, classes)
                    : kind == WordSplit::llama3 ? end_of_llama3_piece(p, end, classes, 3)
                                                : end_of_llama3_piece(p, end, classes, 1);
    f(std::string_view(p, static_cast<std::size_t>(q - p)));
    p = q;
  }
}

}  // namespace redco
