// Normalized texts against transformers' BasicTextNormalizer (scripts/make_speech_fixtures.py), and error
// rates by hand.
#include "metrics/word_errors.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

namespace redco {
namespace {

TEST(WordErrors, NormalizesAsTransformers) {
  std::ifstream in(std::string(REDCO_FIXTURES) + "/whisper/speech.json");
  const auto cases = nlohmann::json::parse(in)["normalized"];
  ASSERT_GE(cases.size(), 10u);
  for (const auto& c : cases)
    EXPECT_EQ(normalized_speech(c["text"]), c["normalized"].get<std::string>()) << c;
  EXPECT_EQ(normalized_speech("a\xff b"), "a b");  // U+FFFD is a symbol
}

TEST(WordErrors, CountsEditsOfAllTexts) {
  // One substitution, one deletion and one insertion in 7 words.
  const ErrorRates r =
      error_rates({"The cat sat.", "on mat", "it is so"}, {{"the dog sat"}, {"on the mat"}, {"it is"}});
  EXPECT_EQ(r.word_errors, 3);
  EXPECT_EQ(r.words, 8);
  EXPECT_DOUBLE_EQ(r.wer(), 3.0 / 8);
  // cat, dog: 3; "the ": 4; " so": 3.
  EXPECT_EQ(r.character_errors, 10);
  EXPECT_EQ(r.characters, 11 + 10 + 5);
  EXPECT_EQ(error_rates({"b"}, {{"a", "B!"}}).wer(), 0);
  EXPECT_EQ(error_rates({""}, {{""}}).wer(), 0);
  EXPECT_EQ(error_rates({"a b"}, {{"..."}}).wer(), 1);
}

}  // namespace
}  // namespace redco
