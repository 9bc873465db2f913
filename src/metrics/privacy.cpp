#include "metrics/privacy.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"

namespace redco {

namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();

// A sum of terms, each given by its logarithm.
class LogSum {
 public:
  void add(double log_term) {
    const double low = std::min(log_, log_term), high = std::max(log_, log_term);
    log_ = low == -kInfinite ? high : high + std::log1p(std::exp(low - high));
  }
  // Subtracts a term; REQUIRES: it is at most the sum.
  void subtract(double log_term) {
    if (log_term == -kInfinite) return;
    log_ = log_term < log_ ? log_ + std::log1p(-std::exp(log_term - log_)) : -kInfinite;
  }
  double log() const { return log_; }

 private:
  double log_ = -kInfinite;
};

// log erfc(x). erfc underflows beyond 26; from 20 on six terms of its asymptotic series are exact in fp64.
double log_erfc(double x) {
  if (x < 20) return std::log(std::erfc(x));
  double series = 1, term = 1;
  for (int n = 1; n <= 6; ++n) series += term *= -(2 * n - 1) / (2 * x * x);
  return -x * x - std::log(x * std::sqrt(M_PI)) + std::log(series);
}

// log A of an integer order: a binomial sum over the number of draws with the record.
double log_moment(double q, double sigma, int order) {
  LogSum a;
  double log_binomial = 0;
  for (int k = 0; k <= order; ++k) {
    a.add(log_binomial + k * std::log(q) + (order - k) * std::log1p(-q) +
          (static_cast<double>(k) * k - k) / (2 * sigma * sigma));
    log_binomial += std::log(order - k) - std::log(k + 1);
  }
  return a.log();
}

// The same for any order: two binomial series, one for each half of the line where one density is larger.
double log_moment_of_real(double q, double sigma, double order) {
  constexpr double kNegligible = -30;  // log of a term that no longer changes A >= 1
  const double border = sigma * sigma * std::log(1 / q - 1) + 0.5;
  const auto square = [&](double k) { return (k * k - k) / (2 * sigma * sigma); };
  LogSum below, above;
  double log_binomial = 0;  // of |C(order, i)|
  bool positive = true;
  for (int i = 0;; ++i) {
    const double j = order - i;
    const double b = log_binomial + i * std::log(q) + j * std::log1p(-q) + square(i) + std::log(0.5) +
                     log_erfc((i - border) / (M_SQRT2 * sigma));
    const double a = log_binomial + j * std::log(q) + i * std::log1p(-q) + square(j) + std::log(0.5) +
                     log_erfc((border - j) / (M_SQRT2 * sigma));
    positive ? below.add(b) : below.subtract(b);
    positive ? above.add(a) : above.subtract(a);
    if (std::max(a, b) < kNegligible) break;
    log_binomial += std::log(std::fabs(j)) - std::log(i + 1.0);
    positive = positive == (j > 0);
  }
  below.add(above.log());
  return below.log();
}

void check(const SampledGaussian& m) {
  if (!(m.sample_rate >= 0 && m.sample_rate <= 1))
    throw UsageError("[privacy] the sample rate is {}; expected 0 to 1", m.sample_rate);
  if (!(m.noise_multiplier >= 0 && std::isfinite(m.noise_multiplier)))
    throw UsageError("[privacy] the noise multiplier is {}; expected 0 or more", m.noise_multiplier);
}

}  // namespace

double renyi_divergence(const SampledGaussian& m, double order) {
  check(m);
  REDCO_CHECK(order > 1 && order <= 1024, "order {}", order);
  const double q = m.sample_rate, sigma = m.noise_multiplier;
  if (q == 0) return 0;
  if (sigma == 0) return kInfinite;
  if (q == 1) return order / (2 * sigma * sigma);
  const bool whole = order == std::floor(order);
  return (whole ? log_moment(q, sigma, static_cast<int>(order)) : log_moment_of_real(q, sigma, order)) /
         (order - 1);
}

double privacy_epsilon(const SampledGaussian& m, i64 steps, double delta) {
  check(m);
  if (!(delta > 0 && delta < 1)) throw UsageError("[privacy] delta is {}; expected between 0 and 1", delta);
  if (steps < 0) throw UsageError("[privacy] the number of steps is {}; expected 0 or more", steps);
  if (steps == 0) return 0;
  double best = kInfinite;
  const auto try_order = [&](double order) {
    const double spent = static_cast<double>(steps) * renyi_divergence(m, order);
    if (std::isnan(spent)) return;
    best = std::min(
        best, spent - (std::log(delta) + std::log(order)) / (order - 1) + std::log((order - 1) / order));
  };
  for (int tenth = 1; tenth < 100; ++tenth) try_order(1 + tenth / 10.0);
  for (int order = 12; order < 64; ++order) try_order(order);
  return std::max(0.0, best);
}

double noise_for_epsilon(double sample_rate, i64 steps, double epsilon, double delta) {
  constexpr double kMost = 1e4, kStep = 1e-4;
  const auto spends = [&](double noise) { return privacy_epsilon({sample_rate, noise}, steps, delta); };
  double high = 1;
  while (high < kMost && !(spends(high) <= epsilon)) high *= 2;
  if (!(spends(high) <= epsilon))
    throw UsageError("[privacy] no noise multiplier up to {} reaches epsilon={} at delta={}; raise epsilon",
                     high, epsilon, delta);
  double low = 0;
  while (high - low > kStep) {
    const double middle = (low + high) / 2;
    (spends(middle) <= epsilon ? high : low) = middle;
  }
  return high;
}

}  // namespace redco
