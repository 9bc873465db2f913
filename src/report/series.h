// A curve of a long run in bounded memory: at most kMostBuckets buckets, each with mean, minimum and maximum
// of its points.
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
  static constexpr std::size_t kMostBuckets = 512;  // even; about the width of a chart in pixels

  // Points keep the order of adding, also if a step is lower than the one before (in a log merged by hand).
  // REQUIRES: finite numbers.
  void add(double step, double value);

  const std::vector<Bucket>& buckets() const { return buckets_; }
  bool sampled() const { return each_ > 1; }  // buckets hold several points
  double last_value() const { return last_value_; }
  double last_step() const { return last_step_; }
  double least() const;
  double most() const;

 private:
  std::vector<Bucket> buckets_;
  i64 each_ = 1;  // points of a full bucket
  double last_value_ = 0, last_step_ = 0;
};

}  // namespace redco
