#include "metrics/classification.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/error.h"

namespace redco {

namespace {

double ratio(double a, double b) { return b == 0 ? 0 : a / b; }

std::vector<double> ranks(std::span<const double> x) {
  std::vector<size_t> order(x.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return x[a] < x[b]; });
  std::vector<double> out(x.size());
  for (size_t i = 0; i < order.size();) {
    size_t end = i + 1;
    while (end < order.size() && x[order[end]] == x[order[i]]) ++end;
    for (size_t k = i; k < end; ++k) out[order[k]] = static_cast<double>(i + end - 1) / 2 + 1;
    i = end;
  }
  return out;
}

}  // namespace

std::map<std::pair<i64, i64>, i64> confusion(std::span<const i64> predictions,
                                             std::span<const i64> references) {
  REDCO_CHECK(predictions.size() == references.size(), "{} predictions, {} references", predictions.size(),
              references.size());
  std::map<std::pair<i64, i64>, i64> out;
  for (size_t i = 0; i < predictions.size(); ++i) ++out[{references[i], predictions[i]}];
  return out;
}

ClassScores class_scores(std::span<const i64> predictions, std::span<const i64> references) {
  ClassScores s;
  const double n = static_cast<double>(predictions.size());
  if (predictions.empty()) return s;
  struct OfClass {
    double predicted = 0, expected = 0, hits = 0;
  };
  std::map<i64, OfClass> classes;
  double right = 0;
  for (const auto& [pair, count] : confusion(predictions, references)) {
    const auto c = static_cast<double>(count);
    classes[pair.first].expected += c;
    classes[pair.second].predicted += c;
    if (pair.first != pair.second) continue;
    classes[pair.first].hits += c;
    right += c;
  }
  s.accuracy = s.f1_micro = right / n;
  // Gorodkin's R_K: covariances of the two indicator matrices.
  double both = 0, predicted = 0, expected = 0;
  for (const auto& [label, c] : classes) {
    const double precision = ratio(c.hits, c.predicted), recall = ratio(c.hits, c.expected);
    const double f1 = ratio(2 * c.hits, c.predicted + c.expected);
    s.precision_macro += precision / static_cast<double>(classes.size());
    s.recall_macro += recall / static_cast<double>(classes.size());
    s.f1_macro += f1 / static_cast<double>(classes.size());
    s.f1_weighted += f1 * c.expected / n;
    if (label == 1) s.f1_binary = f1;
    both += c.predicted * c.expected;
    predicted += c.predicted * c.predicted;
    expected += c.expected * c.expected;
  }
  const double variance = (n * n - predicted) * (n * n - expected);
  s.matthews = variance > 0 ? (right * n - both) / std::sqrt(variance) : 0;
  return s;
}

std::string confusion_table(std::span<const i64> predictions, std::span<const i64> references,
                            const std::vector<std::string>& names) {
  const auto counts = confusion(predictions, references);
  std::size_t width = 5;
  for (const std::string& n : names) width = std::max(width, std::min<std::size_t>(n.size(), 12));
  std::string s(width + 2, ' ');
  for (const std::string& n : names) s += fmt::format(" {:>{}}", n.substr(0, width), width);
  for (i64 t = 0; t < static_cast<i64>(names.size()); ++t) {
    s += fmt::format("\n  {:<{}}", names[t].substr(0, width), width);
    for (i64 p = 0; p < static_cast<i64>(names.size()); ++p) {
      const auto it = counts.find({t, p});
      s += fmt::format(" {:>{}}", it == counts.end() ? 0 : it->second, width);
    }
  }
  return s;
}

double pearson(std::span<const double> x, std::span<const double> y) {
  REDCO_CHECK(x.size() == y.size(), "{} values against {}", x.size(), y.size());
  const double n = static_cast<double>(x.size());
  const double mx = std::accumulate(x.begin(), x.end(), 0.0) / n,
               my = std::accumulate(y.begin(), y.end(), 0.0) / n;
  double xy = 0, xx = 0, yy = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    xy += (x[i] - mx) * (y[i] - my);
    xx += (x[i] - mx) * (x[i] - mx);
    yy += (y[i] - my) * (y[i] - my);
  }
  if (x.size() < 2 || xx == 0 || yy == 0) return std::numeric_limits<double>::quiet_NaN();
  return xy / std::sqrt(xx * yy);
}

double spearman(std::span<const double> x, std::span<const double> y) {
  const auto a = ranks(x), b = ranks(y);
  return pearson(a, b);
}

}  // namespace redco
