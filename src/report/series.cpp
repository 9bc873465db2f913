#include "report/series.h"

#include <algorithm>

namespace redco {

void Series::add(double step, double value) {
  last_step_ = step;
  last_value_ = value;
  if (!buckets_.empty() && buckets_.back().n < each_) {
    Bucket& b = buckets_.back();
    b.last = step;
    b.sum += value;
    b.least = std::min(b.least, value);
    b.most = std::max(b.most, value);
    ++b.n;
    return;
  }
  if (buckets_.size() == kMostBuckets) {
    for (std::size_t i = 0; i < kMostBuckets / 2; ++i) {
      const Bucket &a = buckets_[2 * i], &b = buckets_[2 * i + 1];
      buckets_[i] = {a.first,  b.last, a.sum + b.sum, std::min(a.least, b.least), std::max(a.most, b.most),
                     a.n + b.n};
    }
    buckets_.resize(kMostBuckets / 2);
    each_ *= 2;
  }
  buckets_.push_back({step, step, value, value, value, 1});
}

double Series::least() const {
  double v = buckets_.empty() ? 0 : buckets_[0].least;
  for (const Bucket& b : buckets_) v = std::min(v, b.least);
  return v;
}

double Series::most() const {
  double v = buckets_.empty() ? 0 : buckets_[0].most;
  for (const Bucket& b : buckets_) v = std::max(v, b.most);
  return v;
}

}  // namespace redco
