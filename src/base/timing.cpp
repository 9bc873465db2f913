#include "base/timing.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "base/error.h"

namespace redco {

double seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double wall_seconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

double median(std::vector<double> v) {
  REDCO_CHECK(!v.empty());
  std::sort(v.begin(), v.end());
  const std::size_t n = v.size();
  return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

void Pace::step(i64 n, double seconds) {
  if (n <= 0 || !(seconds >= 0)) return;
  const double constant = std::max(60.0, 20 * step_seconds());
  const double kept = std::exp(-seconds / constant);
  steps_ = steps_ * kept + static_cast<double>(n);
  time_ = time_ * kept + seconds;
  stepping_ += seconds;
}

void Pace::pause(double seconds) { paused_ += std::max(0.0, seconds); }

double Pace::left(i64 steps) const {
  const double share = stepping_ > 0 ? 1 + paused_ / stepping_ : 1;
  return static_cast<double>(std::max<i64>(0, steps)) * step_seconds() * share;
}

}  // namespace redco
