#include "metrics/porter.h"

#include <functional>
#include <span>
#include <string_view>
#include <utility>

namespace redco {

namespace {

bool consonant(std::string_view w, size_t i) {
  switch (w[i]) {
    case 'a':
    case 'e':
    case 'i':
    case 'o':
    case 'u':
      return false;
    case 'y': {
      // y is a consonant at the beginning and after a vowel, so a run of y alternates.
      size_t first = i;
      while (first > 0 && w[first - 1] == 'y') --first;
      const bool at_first = first == 0 || !consonant(w, first - 1);
      return ((i - first) % 2 == 0) == at_first;
    }
    default:
      return true;
  }
}

// m of [C](VC)^m[V].
int measure(std::string_view w) {
  int m = 0;
  for (size_t i = 1; i < w.size(); ++i) m += consonant(w, i) && !consonant(w, i - 1);
  return m;
}
bool has_vowel(std::string_view w) {
  for (size_t i = 0; i < w.size(); ++i)
    if (!consonant(w, i)) return true;
  return false;
}
bool double_consonant(std::string_view w) {
  const size_t n = w.size();
  return n >= 2 && w[n - 1] == w[n - 2] && consonant(w, n - 1);
}
// The word ends with consonant, vowel, consonant other than w, x, y; or (NLTK) it is vowel, consonant.
bool ends_cvc(std::string_view w) {
  const size_t n = w.size();
  if (n == 2) return !consonant(w, 0) && consonant(w, 1);
  return n >= 3 && consonant(w, n - 3) && !consonant(w, n - 2) && consonant(w, n - 1) &&
         std::string_view("wxy").find(w[n - 1]) == std::string_view::npos;
}

bool positive(std::string_view stem) { return measure(stem) > 0; }
bool above_one(std::string_view stem) { return measure(stem) > 1; }
bool always(std::string_view) { return true; }

struct Rule {
  std::string_view suffix, replacement;
  bool (*condition)(std::string_view stem);
};

// Only the first rule with a matching suffix is tried, even if its condition fails.
std::string apply_first(const std::string& word, std::span<const Rule> rules) {
  for (const Rule& r : rules) {
    if (!word.ends_with(r.suffix)) continue;
    const std::string stem = word.substr(0, word.size() - r.suffix.size());
    return r.condition(stem) ? stem + std::string(r.replacement) : word;
  }
  return word;
}

std::string step1a(const std::string& w) {
  if (w.ends_with("ies") && w.size() == 4) return w.substr(0, 1) + "ie";
  static constexpr Rule kRules[] = {
      {"sses", "ss", always}, {"ies", "i", always}, {"ss", "ss", always}, {"s", "", always}};
  return apply_first(w, kRules);
}

std::string step1b(const std::string& w) {
  if (w.ends_with("ied")) return w.substr(0, w.size() - 3) + (w.size() == 4 ? "ie" : "i");
  if (w.ends_with("eed")) return positive(w.substr(0, w.size() - 3)) ? w.substr(0, w.size() - 1) : w;
  std::string stem;
  for (const std::string_view suffix : {"ed", "ing"}) {
    if (!w.ends_with(suffix)) continue;
    stem = w.substr(0, w.size() - suffix.size());
    if (has_vowel(stem)) break;
    stem.clear();
  }
  if (stem.empty()) return w;
  for (const std::string_view end : {"at", "bl", "iz"})
    if (stem.ends_with(end)) return stem + "e";
  if (double_consonant(stem)) {
    const char last = stem.back();
    return last == 'l' || last == 's' || last == 'z' ? stem : stem.substr(0, stem.size() - 1);
  }
  return measure(stem) == 1 && ends_cvc(stem) ? stem + "e" : stem;
}

std::string step1c(const std::string& w) {
  static constexpr Rule kRules[] = {
      {"y", "i", [](std::string_view s) { return s.size() > 1 && consonant(s, s.size() - 1); }}};
  return apply_first(w, kRules);
}

std::string step2(const std::string& w) {
  if (w.ends_with("alli") && positive(w.substr(0, w.size() - 4))) return step2(w.substr(0, w.size() - 2));
  static constexpr Rule kRules[] = {
      {"ational", "ate", positive}, {"tional", "tion", positive}, {"enci", "ence", positive},
      {"anci", "ance", positive},   {"izer", "ize", positive},    {"bli", "ble", positive},
      {"alli", "al", positive},     {"entli", "ent", positive},   {"eli", "e", positive},
      {"ousli", "ous", positive},   {"ization", "ize", positive}, {"ation", "ate", positive},
      {"ator", "ate", positive},    {"alism", "al", positive},    {"iveness", "ive", positive},
      {"fulness", "ful", positive}, {"ousness", "ous", positive}, {"aliti", "al", positive},
      {"iviti", "ive", positive},   {"biliti", "ble", positive},  {"fulli", "ful", positive}};
  // NLTK tests the condition of -logi on the stem with its l.
  if (w.ends_with("logi")) return positive(w.substr(0, w.size() - 3)) ? w.substr(0, w.size() - 1) : w;
  return apply_first(w, kRules);
}

std::string step3(const std::string& w) {
  static constexpr Rule kRules[] = {{"icate", "ic", positive}, {"ative", "", positive},
                                    {"alize", "al", positive}, {"iciti", "ic", positive},
                                    {"ical", "ic", positive},  {"ful", "", positive},
                                    {"ness", "", positive}};
  return apply_first(w, kRules);
}

std::string step4(const std::string& w) {
  static constexpr Rule kRules[] = {
      {"al", "", above_one},
      {"ance", "", above_one},
      {"ence", "", above_one},
      {"er", "", above_one},
      {"ic", "", above_one},
      {"able", "", above_one},
      {"ible", "", above_one},
      {"ant", "", above_one},
      {"ement", "", above_one},
      {"ment", "", above_one},
      {"ent", "", above_one},
      {"ion", "", [](std::string_view s) { return measure(s) > 1 && (s.back() == 's' || s.back() == 't'); }},
      {"ou", "", above_one},
      {"ism", "", above_one},
      {"ate", "", above_one},
      {"iti", "", above_one},
      {"ous", "", above_one},
      {"ive", "", above_one},
      {"ize", "", above_one}};
  return apply_first(w, kRules);
}

std::string step5a(const std::string& w) {
  if (!w.ends_with("e")) return w;
  const std::string stem = w.substr(0, w.size() - 1);
  const int m = measure(stem);
  return m > 1 || (m == 1 && !ends_cvc(stem)) ? stem : w;
}

std::string step5b(const std::string& w) {
  return w.ends_with("ll") && measure(std::string_view(w).substr(0, w.size() - 1)) > 1
             ? w.substr(0, w.size() - 1)
             : w;
}

constexpr std::pair<std::string_view, std::string_view> kIrregular[] = {
    {"sky", "sky"},        {"skies", "sky"},       {"dying", "die"},        {"lying", "lie"},
    {"tying", "tie"},      {"news", "news"},       {"innings", "inning"},   {"inning", "inning"},
    {"outings", "outing"}, {"outing", "outing"},   {"cannings", "canning"}, {"canning", "canning"},
    {"howe", "howe"},      {"proceed", "proceed"}, {"exceed", "exceed"},    {"succeed", "succeed"}};

}  // namespace

std::string porter_stem(const std::string& word) {
  for (const auto& [irregular, stem] : kIrregular)
    if (word == irregular) return std::string(stem);
  if (word.size() <= 2) return word;
  return step5b(step5a(step4(step3(step2(step1c(step1b(step1a(word))))))));
}

}  // namespace redco
