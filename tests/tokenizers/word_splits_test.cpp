// Compares the hand-written splitters with Oniguruma on random text of all characters that the patterns
// distinguish.
#include "tokenizers/pre_tokenizers/word_splits.h"

#include <gtest/gtest.h>

#include <random>

#include "base/types.h"
#include "base/utf8.h"
#include "unicode/char_class.h"
#include "unicode/regex.h"

namespace redco {
namespace {

const char32_t kAlphabet[] = {' ',      ' ',    ' ',    '\n',   '\r',    '\t',    0x0B,   0x0C,    0x85,
                              0xA0,     0x2028, 0x3000, 0x200B,  // spaces
                              '\'',     '\'',   '\'',   's',    't',     'r',     'e',    'v',     'm',
                              'l',      'd',    'S',    'T',    'L',     'E',     'R',    'V',     'M',
                              'D',      0x17F,  0x212A, 'a',    'Z',     0xE9,    0x4E2D, 0x1D400, '0',
                              '7',      0x0663, 0xBD,   0x2167, 0x1F1E6, 0x1F600, '.',    ',',     '-',
                              '_',      '"',    0x301,  0x64B,  0x2019,  0xAD,    0xFEFF, 0x0,     0x7F,
                              0x10FFFF, 0xE000, 0x1C5,  0x2B0,  0x3042,  0xFF07};

class WordSplits : public testing::TestWithParam<WordSplit> {};

TEST_P(WordSplits, AgreeWithOniguruma) {
  const Regex regex(std::string(pattern_of(GetParam())), "test");
  std::mt19937 random(17);
  std::size_t pieces = 0;
  for (int round = 0; round < 60000; ++round) {
    std::string text;
    const auto n = random() % 24;
    // Few distinct characters in a text make long runs likely.
    const auto kinds = 1 + random() % 8;
    std::vector<char32_t> some;
    for (unsigned k = 0; k < kinds; ++k) some.push_back(kAlphabet[random() % std::size(kAlphabet)]);
    for (unsigned k = 0; k < n; ++k) append_utf8(some[random() % some.size()], text);
    std::vector<std::pair<std::size_t, std::size_t>> got;
    split_words(GetParam(), text, char_classes(), [&](std::string_view piece) {
      const auto begin = static_cast<std::size_t>(piece.data() - text.data());
      got.emplace_back(begin, begin + piece.size());
    });
    ASSERT_EQ(got, regex.find_all(text)) << testing::PrintToString(text);
    pieces += got.size();
  }
  EXPECT_GT(pieces, 200000u);
}

INSTANTIATE_TEST_SUITE_P(All, WordSplits,
                         testing::Values(WordSplit::gpt2, WordSplit::llama3, WordSplit::qwen));

TEST(WordSplits, KnownPatterns) {
  EXPECT_EQ(known_pattern(pattern_of(WordSplit::llama3)), WordSplit::llama3);
  EXPECT_EQ(known_pattern("\\s+"), std::nullopt);
}

}  // namespace
}  // namespace redco
