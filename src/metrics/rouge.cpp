#include "metrics/rouge.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "base/types.h"
#include "metrics/porter.h"
#include "unicode/python_text.h"

namespace redco {

namespace {

// Words as numbers, for fast comparisons.
using Words = std::vector<int>;

class Numbering {
 public:
  explicit Numbering(bool stem) : stem_(stem) {}
  Words words(const std::string& text) {
    Words out;
    std::string word;
    auto end = [&] {
      if (word.empty()) return;
      if (stem_ && word.size() > 3) word = porter_stem(word);
      out.push_back(numbers_.try_emplace(word, static_cast<int>(numbers_.size())).first->second);
      word.clear();
    };
    for (const char c : python_lower(text)) {
      if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'))
        word += c;
      else
        end();
    }
    end();
    return out;
  }

 private:
  bool stem_;
  std::unordered_map<std::string, int> numbers_;
};

}  // namespace

bool has_rouge_words(const std::string& text) { return !Numbering(false).words(text).empty(); }

namespace {

PrecisionRecall of(double hits, double predicted, double expected) {
  PrecisionRecall s;
  s.precision = hits / std::max(1.0, predicted);
  s.recall = hits / std::max(1.0, expected);
  if (s.precision + s.recall > 0) s.f1 = 2 * s.precision * s.recall / (s.precision + s.recall);
  return s;
}

PrecisionRecall n_grams(const Words& prediction, const Words& reference, size_t n) {
  auto counts = [n](const Words& w) {
    std::map<std::vector<int>, i64> c;
    for (size_t i = 0; i + n <= w.size(); ++i) ++c[{w.begin() + i, w.begin() + i + n}];
    return c;
  };
  const auto p = counts(prediction), r = counts(reference);
  i64 hits = 0, predicted = 0, expected = 0;
  for (const auto& [gram, count] : r) {
    expected += count;
    const auto it = p.find(gram);
    if (it != p.end()) hits += std::min(count, it->second);
  }
  for (const auto& [gram, count] : p) predicted += count;
  return of(static_cast<double>(hits), static_cast<double>(predicted), static_cast<double>(expected));
}

// table[i][j]: length of the longest common subsequence of a[0, i) and b[0, j).
std::vector<std::vector<int>> lcs_table(const Words& a, const Words& b) {
  std::vector<std::vector<int>> t(a.size() + 1, std::vector<int>(b.size() + 1, 0));
  for (size_t i = 1; i <= a.size(); ++i)
    for (size_t j = 1; j <= b.size(); ++j)
      t[i][j] = a[i - 1] == b[j - 1] ? t[i - 1][j - 1] + 1 : std::max(t[i - 1][j], t[i][j - 1]);
  return t;
}
// The length alone needs only two rows of the table.
i64 lcs_length(const Words& a, const Words& b) {
  std::vector<i64> row(b.size() + 1, 0);
  for (const int x : a) {
    i64 diagonal = 0;
    for (size_t j = 1; j <= b.size(); ++j) {
      const i64 above = row[j];
      row[j] = x == b[j - 1] ? diagonal + 1 : std::max(above, row[j - 1]);
      diagonal = above;
    }
  }
  return row.back();
}

PrecisionRecall longest(const Words& prediction, const Words& reference) {
  if (prediction.empty() || reference.empty()) return {};
  return of(static_cast<double>(lcs_length(reference, prediction)), static_cast<double>(prediction.size()),
            static_cast<double>(reference.size()));
}

// Marks the words of `reference` in its longest common subsequence with `candidate`.
void mark_lcs(const Words& reference, const Words& candidate, std::vector<bool>& marked) {
  const auto t = lcs_table(reference, candidate);
  size_t i = reference.size(), j = candidate.size();
  while (i > 0 && j > 0) {
    if (reference[i - 1] == candidate[j - 1]) {
      marked[--i] = true;
      --j;
    } else if (t[i][j - 1] > t[i - 1][j]) {
      --j;
    } else {
      --i;
    }
  }
}

std::vector<Words> sentences(Numbering& numbering, const std::string& text) {
  std::vector<Words> out;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    if (end > at) out.push_back(numbering.words(text.substr(at, end - at)));
    at = end + 1;
  }
  return out;
}

// ROUGE-Lsum (Lin 2004, section 3.2); each word counts at most as often as it occurs.
PrecisionRecall summary_level(const std::vector<Words>& prediction, const std::vector<Words>& reference) {
  i64 predicted = 0, expected = 0, hits = 0;
  std::map<int, i64> left_p, left_r;
  for (const Words& s : prediction)
    for (const int w : s) ++left_p[w], ++predicted;
  for (const Words& s : reference)
    for (const int w : s) ++left_r[w], ++expected;
  if (predicted == 0 || expected == 0) return {};
  for (const Words& r : reference) {
    std::vector<bool> marked(r.size(), false);
    for (const Words& p : prediction) mark_lcs(r, p, marked);
    for (size_t i = 0; i < r.size(); ++i)
      if (marked[i] && left_p[r[i]] > 0 && left_r[r[i]] > 0) --left_p[r[i]], --left_r[r[i]], ++hits;
  }
  return of(static_cast<double>(hits), static_cast<double>(predicted), static_cast<double>(expected));
}

}  // namespace

Rouge rouge(const std::string& prediction, const std::string& reference, bool use_stemmer) {
  Numbering numbering(use_stemmer);
  const Words p = numbering.words(prediction), r = numbering.words(reference);
  return {n_grams(p, r, 1), n_grams(p, r, 2), longest(p, r),
          summary_level(sentences(numbering, prediction), sentences(numbering, reference))};
}

Rouge rouge(const std::string& prediction, const std::vector<std::string>& references, bool use_stemmer) {
  Rouge best;
  bool any = false;
  for (const std::string& reference : references) {
    const Rouge r = rouge(prediction, reference, use_stemmer);
    for (auto part : {&Rouge::rouge1, &Rouge::rouge2, &Rouge::rougeL, &Rouge::rougeLsum})
      if (!any || (r.*part).f1 > (best.*part).f1) best.*part = r.*part;
    any = true;
  }
  return best;
}

}  // namespace redco
