#include "report/series.h"

#include <algorithm>

namespace redco {

void Series::add(double step, double value) {
  const bool is_first = buckets_.empty();
  last_ = {step, value};
  if (is_first || value < least_.value) least_ = last_;
  if (is_first || value > most_.value) most_ = last_;
  first_step_ = is_first ? step : std::min(first_step_, step);
  last_step_ = is_first ? step : std::max(last_step_, step);
  if (!is_first && buckets_.back().n < each_) {
    Bucket& b = buckets_.back();
    b.first = std::min(b.first, step);
    b.last = std::max(b.last, step);
    b.sum += value;
    b.least = std::min(b.least, value);
    b.most = std::max(b.most, value);
    ++b.n;
    return;
  }
  if (buckets_.size() == kMostBuckets) {
    for (std::size_t i = 0; i < kMostBuckets / 2; ++i) {
      const Bucket &a = buckets_[2 * i], &b = buckets_[2 * i + 1];
      buckets_[i] = {std::min(a.first, b.first), std::max(a.last, b.last), a.sum + b.sum,
                     std::min(a.least, b.least), std::max(a.most, b.most), a.n + b.n};
    }
    buckets_.resize(kMostBuckets / 2);
    each_ *= 2;
  }
  buckets_.push_back({step, step, value, value, value, 1});
}

}  // namespace redco
