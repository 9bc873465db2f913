#include "metrics/bleu.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <unordered_map>

#include "base/error.h"
#include "unicode/python_text.h"

namespace redco {

namespace {

void replace_all(std::string& s, std::string_view what, std::string_view by) {
  for (size_t at = 0; (at = s.find(what, at)) != std::string::npos; at += by.size())
    s.replace(at, what.size(), by);
}

bool digit(char c) { return c >= '0' && c <= '9'; }
bool stop(char c) { return c == '.' || c == ','; }
// [\{-\~\[-\` -\&\(-\+\:-\@\/]
bool set_apart(char c) {
  return (c >= '{' && c <= '~') || (c >= '[' && c <= '`') || (c >= ' ' && c <= '&') ||
         (c >= '(' && c <= '+') || (c >= ':' && c <= '@') || c == '/';
}

using Counts = std::unordered_map<std::string, i64>;

// n-grams of all four orders; the key is the words joined by blanks.
Counts n_grams(const std::vector<std::string>& words) {
  Counts c;
  for (size_t i = 0; i < words.size(); ++i) {
    std::string gram;
    for (size_t n = 0; n < 4 && i + n < words.size(); ++n) {
      if (n > 0) gram += ' ';
      gram += words[i + n];
      ++c[gram];
    }
  }
  return c;
}
size_t order_of(const std::string& gram) {
  return static_cast<size_t>(std::count(gram.begin(), gram.end(), ' '));
}

std::vector<std::string> words_of(const std::string& text, bool lowercase) {
  return python_split(tokenize_13a(lowercase ? python_lower(text) : text));
}

}  // namespace

std::string tokenize_13a(const std::string& text) {
  std::string s = text;
  // rstrip(): white space at the end is not part of a token.
  while (!s.empty() && (s.back() == ' ' || (s.back() >= 9 && s.back() <= 13))) s.pop_back();
  replace_all(s, "<skipped>", "");
  replace_all(s, "-\n", "");
  replace_all(s, "\n", " ");
  if (s.find('&') != std::string::npos) {
    replace_all(s, "&quot;", "\"");
    replace_all(s, "&amp;", "&");
    replace_all(s, "&lt;", "<");
    replace_all(s, "&gt;", ">");
  }
  std::string a = " ", b;
  for (const char c : s) {
    if (set_apart(c)) {
      a += ' ';
      a += c;
      a += ' ';
    } else {
      a += c;
    }
  }
  a += ' ';
  // ([^0-9])([\.,]) -> "\1 \2 ": a match consumes both characters. Bytes of characters beyond ASCII are
  // neither digits nor punctuation, so working on bytes gives the same result.
  for (size_t i = 0; i < a.size(); ++i) {
    if (i + 1 < a.size() && !digit(a[i]) && stop(a[i + 1])) {
      b += a[i];
      b += ' ';
      b += a[i + 1];
      b += ' ';
      ++i;
    } else {
      b += a[i];
    }
  }
  // ([\.,])([^0-9]) -> " \1 \2"
  a.clear();
  for (size_t i = 0; i < b.size(); ++i) {
    if (stop(b[i]) && i + 1 < b.size() && !digit(b[i + 1])) {
      a += ' ';
      a += b[i];
      a += ' ';
      a += b[i + 1];
      ++i;
    } else {
      a += b[i];
    }
  }
  // ([0-9])(-) -> "\1 \2 "
  b.clear();
  for (size_t i = 0; i < a.size(); ++i) {
    b += a[i];
    if (digit(a[i]) && i + 1 < a.size() && a[i + 1] == '-') {
      b += " - ";
      ++i;
    }
  }
  std::string out;
  for (const std::string& w : python_split(b)) out += (out.empty() ? "" : " ") + w;
  return out;
}

Bleu bleu(const std::vector<std::string>& predictions,
          const std::vector<std::vector<std::string>>& references, const BleuOptions& o) {
  REDCO_CHECK(predictions.size() == references.size(), "{} predictions, {} references", predictions.size(),
              references.size());
  Bleu r;
  for (size_t i = 0; i < predictions.size(); ++i) {
    REDCO_CHECK(!references[i].empty(), "prediction {} has no reference", i);
    const auto prediction = words_of(predictions[i], o.lowercase);
    const i64 length = static_cast<i64>(prediction.size());
    Counts allowed;
    i64 closest = -1;
    for (const std::string& text : references[i]) {
      const auto reference = words_of(text, o.lowercase);
      const i64 n = static_cast<i64>(reference.size());
      const i64 far = std::abs(n - length), best = std::abs(closest - length);
      if (closest < 0 || far < best || (far == best && n < closest)) closest = n;
      for (const auto& [gram, count] : n_grams(reference)) {
        i64& most = allowed[gram];
        most = std::max(most, count);
      }
    }
    for (const auto& [gram, count] : n_grams(prediction)) {
      const size_t n = order_of(gram);
      r.totals[n] += count;
      const auto it = allowed.find(gram);
      if (it != allowed.end()) r.counts[n] += std::min(count, it->second);
    }
    r.prediction_length += length;
    r.reference_length += closest;
  }
  r.brevity_penalty = 1;
  if (r.prediction_length < r.reference_length)
    r.brevity_penalty =
        r.prediction_length > 0
            ? std::exp(1 - static_cast<double>(r.reference_length) / static_cast<double>(r.prediction_length))
            : 0;
  if (r.counts == std::array<i64, 4>{}) return r;
  double smooth = 1, sum = 0;
  int orders = 4;
  for (int n = 0; n < 4; ++n) {
    if (r.totals[n] == 0) break;
    if (o.effective_order) orders = n + 1;
    if (r.counts[n] == 0) {
      smooth *= 2;
      r.precisions[n] = 100 / (smooth * static_cast<double>(r.totals[n]));
    } else {
      r.precisions[n] = 100 * static_cast<double>(r.counts[n]) / static_cast<double>(r.totals[n]);
    }
  }
  for (int n = 0; n < orders; ++n) sum += r.precisions[n] == 0 ? -9999999999.0 : std::log(r.precisions[n]);
  r.score = r.brevity_penalty * std::exp(sum / orders);
  return r;
}

}  // namespace redco
