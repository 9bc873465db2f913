#include "metrics/word_errors.h"

#include <algorithm>
#include <numeric>

#include "base/utf8.h"
#include "unicode/normal_forms.h"
#include "unicode/python_text.h"
#include "unicode/regex.h"

namespace redco {

namespace {

std::string replaced(const Regex& what, const std::string& text, const char* by) {
  std::string out;
  std::size_t at = 0;
  for (const auto& [begin, end] : what.find_all(text)) {
    out.append(text, at, begin - at);
    out += by;
    at = end;
  }
  return out.append(text, at);
}

// Levenshtein's distance of two sequences.
template <class Sequence>
i64 edit_distance(const Sequence& a, const Sequence& b) {
  std::vector<i64> row(b.size() + 1);
  std::iota(row.begin(), row.end(), i64{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    i64 diagonal = row[0]++;
    for (std::size_t k = 0; k < b.size(); ++k) {
      const i64 changed = diagonal + (a[i] == b[k] ? 0 : 1);
      diagonal = row[k + 1];
      row[k + 1] = std::min({changed, row[k] + 1, row[k + 1] + 1});
    }
  }
  return row.back();
}

}  // namespace

std::string normalized_speech(const std::string& text) {
  static const Regex brackets(R"([<\[][^>\]]*[>\]])", "word_errors"),
      parentheses(R"(\([^)]+?\))", "word_errors"), symbols(R"([\p{M}\p{S}\p{P}])", "word_errors");
  std::string s;
  for (const char32_t c : characters(text)) append_utf8(c, s);
  s = replaced(parentheses, replaced(brackets, python_lower(s), ""), "");
  s = python_lower(replaced(symbols, to_normal_form(s, NormalForm::nfkc), " "));
  std::string out;
  for (const std::string& word : python_split(s)) out += (out.empty() ? "" : " ") + word;
  return out;
}

ErrorRates error_rates(const std::vector<std::string>& predictions,
                       const std::vector<std::vector<std::string>>& references) {
  ErrorRates all;
  for (std::size_t i = 0; i < predictions.size(); ++i) {
    const std::string said = normalized_speech(predictions[i]);
    const std::vector<std::string> words = python_split(said);
    const std::u32string letters = characters(said);
    ErrorRates best;
    for (std::size_t r = 0; r < references[i].size(); ++r) {
      const std::string expected = normalized_speech(references[i][r]);
      const std::vector<std::string> expected_words = python_split(expected);
      const std::u32string expected_letters = characters(expected);
      ErrorRates one;
      one.word_errors = edit_distance(words, expected_words);
      one.words = std::ssize(expected_words);
      one.character_errors = edit_distance(letters, expected_letters);
      one.characters = std::ssize(expected_letters);
      if (r == 0 || one.word_errors < best.word_errors) best = one;
    }
    all.word_errors += best.word_errors;
    all.words += best.words;
    all.character_errors += best.character_errors;
    all.characters += best.characters;
  }
  return all;
}

}  // namespace redco
