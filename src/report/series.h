// A curve of a long run in bounded memory: at most kMostBuckets buckets, each with the mean, the least and
// the greatest of its points.
#pragma once

#include <vector>

#include "base/types.h"

namespace redco {

class Series {
 public:
  struct Bucket {
    double first = 0, last = 0;  // steps
    double sum = 0, least = 0, most = 0;
    i64 n = 0;
    double mean() const { return sum / static_cast<double>(n); }
    double step() const { return (first + last) / 2; }
  };
  struct Point {
    double step = 0, value = 0;
  };
  static constexpr std::size_t kMostBuckets = 512;  // even; about the width of a chart in pixels

  // A step smaller than the one before is kept in the order of adding. REQUIRES: finite.
  void add(double step, double value);

  const std::vector<Bucket>& buckets() const { return buckets_; }
  bool sampled() const { return each_ > 1; }  // buckets hold several points
  // REQUIRES, for all below: a point was added.
  const Point& last() const { return last_; }
  const Point& least() const { return least_; }  // the earliest of equal ones
  const Point& most() const { return most_; }
  double first_step() const { return first_step_; }  // the smallest
  double last_step() const { return last_step_; }    // the greatest

 private:
  std::vector<Bucket> buckets_;
  i64 each_ = 1;  // points of a full bucket
  Point last_, least_, most_;
  double first_step_ = 0, last_step_ = 0;
};

}  // namespace redco
