#include "metrics/squad.h"

#include <algorithm>
#include <map>

#include "unicode/python_text.h"

namespace redco {

namespace {

std::vector<std::string> answer_words(const std::string& text) {
  const std::string lower = python_lower(text);
  std::string kept;
  for (const char c : lower) {
    const bool punctuation =
        (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') || (c >= '{' && c <= '~');
    if (!punctuation) kept += c;
  }
  std::vector<std::string> words = python_split(kept);
  std::erase_if(words, [](const std::string& w) { return w == "a" || w == "an" || w == "the"; });
  return words;
}

SquadScore one_score(const std::string& prediction, const std::string& answer) {
  const std::vector<std::string> p = answer_words(prediction), a = answer_words(answer);
  SquadScore s;
  s.exact = p == a;
  if (p.empty() || a.empty()) {
    s.f1 = s.exact;
    return s;
  }
  std::map<std::string, int> counts;
  for (const std::string& w : a) ++counts[w];
  double same = 0;
  for (const std::string& w : p)
    if (counts[w]-- > 0) ++same;
  const double precision = same / static_cast<double>(p.size()),
               recall = same / static_cast<double>(a.size());
  s.f1 = same > 0 ? 2 * precision * recall / (precision + recall) : 0;
  return s;
}

}  // namespace

std::string normalized_answer(const std::string& text) {
  std::string out;
  for (const std::string& w : answer_words(text)) out += (out.empty() ? "" : " ") + w;
  return out;
}

SquadScore squad_score(const std::string& prediction, const std::vector<std::string>& answers) {
  SquadScore best;
  std::vector<std::string> all;
  for (const std::string& a : answers)
    if (!normalized_answer(a).empty()) all.push_back(a);
  if (all.empty()) all.emplace_back();
  for (const std::string& a : all) {
    const SquadScore s = one_score(prediction, a);
    best.exact = std::max(best.exact, s.exact);
    best.f1 = std::max(best.f1, s.f1);
  }
  return best;
}

}  // namespace redco
