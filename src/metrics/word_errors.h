// Word and character error rates of speech recognition.
#pragma once

#include <string>
#include <vector>

#include "base/types.h"

namespace redco {

// Text as error rates compare it: lower case, NFKC, without words in brackets or parentheses, each mark,
// symbol and punctuation character as a space, single spaces. Equal to transformers' BasicTextNormalizer of
// Whisper, without the spaces at the ends.
std::string normalized_speech(const std::string& text);

// Insertions, deletions and substitutions, and the size of the references.
struct ErrorRates {
  i64 word_errors = 0, words = 0, character_errors = 0, characters = 0;
  // Errors of all texts, divided by the words or characters of all references. If these are 0: 0 without
  // errors, else 1.
  double wer() const { return rate(word_errors, words); }
  double cer() const { return rate(character_errors, characters); }

 private:
  static double rate(i64 errors, i64 size) {
    return size > 0 ? static_cast<double>(errors) / static_cast<double>(size) : errors > 0 ? 1 : 0;
  }
};

// references[i], one or more, belong to predictions[i]; the one with the fewest word errors counts. Texts are
// normalized first.
ErrorRates error_rates(const std::vector<std::string>& predictions,
                       const std::vector<std::vector<std::string>>& references);

}  // namespace redco
