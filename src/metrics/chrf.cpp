#include "metrics/chrf.h"

#include <algorithm>
#include <unordered_map>

#include "base/error.h"
#include "unicode/python_text.h"

namespace redco {

namespace {

struct Text {
  std::u32string characters;  // without white space
  std::vector<std::string> words;
};

bool punctuation(char c) {
  return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') || (c >= '{' && c <= '~');
}

Text prepare(const std::string& raw, const ChrfOptions& o) {
  const std::string text = o.lowercase ? python_lower(raw) : raw;
  Text t;
  for (const char32_t c : characters(text))
    if (!is_python_space(c)) t.characters.push_back(c);
  if (o.word_order == 0) return t;
  // A punctuation mark at the end of a word, else one at its beginning, becomes a separate word.
  for (std::string& w : python_split(text)) {
    if (characters(w).size() == 1) {
      t.words.push_back(std::move(w));
    } else if (punctuation(w.back())) {
      t.words.push_back(w.substr(0, w.size() - 1));
      t.words.emplace_back(1, w.back());
    } else if (punctuation(w.front())) {
      t.words.emplace_back(1, w.front());
      t.words.push_back(w.substr(1));
    } else {
      t.words.push_back(std::move(w));
    }
  }
  return t;
}

struct Statistics {
  i64 predicted = 0, expected = 0, hits = 0;
};

template <class Key>
Statistics compare(const std::unordered_map<Key, i64>& p, const std::unordered_map<Key, i64>& r) {
  Statistics s;
  for (const auto& [gram, count] : r) s.expected += count;
  for (const auto& [gram, count] : p) {
    s.predicted += count;
    const auto it = r.find(gram);
    if (it != r.end()) s.hits += std::min(count, it->second);
  }
  if (r.empty()) s.predicted = 0;  // an order for which the reference is too short does not count
  return s;
}

std::unordered_map<std::u32string, i64> char_grams(const std::u32string& s, size_t n) {
  std::unordered_map<std::u32string, i64> c;
  for (size_t i = 0; i + n <= s.size(); ++i) ++c[s.substr(i, n)];
  return c;
}
std::unordered_map<std::string, i64> word_grams(const std::vector<std::string>& w, size_t n) {
  std::unordered_map<std::string, i64> c;
  for (size_t i = 0; i + n <= w.size(); ++i) {
    std::string gram = w[i];
    for (size_t k = 1; k < n; ++k) gram += " " + w[i + k];
    ++c[gram];
  }
  return c;
}

std::vector<Statistics> statistics(const Text& p, const Text& r, const ChrfOptions& o) {
  std::vector<Statistics> out;
  for (int n = 1; n <= o.char_order; ++n)
    out.push_back(compare(char_grams(p.characters, n), char_grams(r.characters, n)));
  for (int n = 1; n <= o.word_order; ++n)
    out.push_back(compare(word_grams(p.words, n), word_grams(r.words, n)));
  return out;
}

double f_score(const std::vector<Statistics>& all, double beta) {
  double precision = 0, recall = 0;
  int orders = 0;
  for (const Statistics& s : all) {
    if (s.predicted == 0 || s.expected == 0) continue;
    precision += static_cast<double>(s.hits) / static_cast<double>(s.predicted);
    recall += static_cast<double>(s.hits) / static_cast<double>(s.expected);
    ++orders;
  }
  if (orders == 0) return 0;
  precision /= orders;
  recall /= orders;
  const double factor = beta * beta;
  return precision + recall > 0 ? 100 * (1 + factor) * precision * recall / (factor * precision + recall) : 0;
}

}  // namespace

double chrf(const std::vector<std::string>& predictions,
            const std::vector<std::vector<std::string>>& references, const ChrfOptions& o) {
  REDCO_CHECK(predictions.size() == references.size(), "{} predictions, {} references", predictions.size(),
              references.size());
  std::vector<Statistics> sum(o.char_order + o.word_order);
  for (size_t i = 0; i < predictions.size(); ++i) {
    REDCO_CHECK(!references[i].empty(), "prediction {} has no reference", i);
    const Text p = prepare(predictions[i], o);
    std::vector<Statistics> best;
    double best_score = -1;
    for (const std::string& text : references[i]) {
      auto s = statistics(p, prepare(text, o), o);
      const double score = f_score(s, o.beta);
      if (score > best_score) {
        best_score = score;
        best = std::move(s);
      }
    }
    for (size_t k = 0; k < sum.size(); ++k) {
      sum[k].predicted += best[k].predicted;
      sum[k].expected += best[k].expected;
      sum[k].hits += best[k].hits;
    }
  }
  return f_score(sum, o.beta);
}

}  // namespace redco
