// Clocks, the median, and the estimate of the remaining time.
#pragma once

#include <vector>

#include "base/types.h"

namespace redco {

// Seconds of a monotonic clock with an arbitrary zero.
double seconds();

// Seconds since 1970.
double wall_seconds();

// The middle value; for an even number of values the mean of the two middle ones. REQUIRES: not empty.
double median(std::vector<double> values);

// Estimates the time of the remaining steps. Recent steps have more weight (time constant: one minute, or 20
// steps if these take longer), so the estimate follows a machine that slows down. Pauses between steps
// (evaluations, saves) are included in proportion to their share so far.
class Pace {
 public:
  void step(i64 n, double seconds);  // n steps took this many seconds in total, without pauses
  void pause(double seconds);
  double step_seconds() const { return steps_ > 0 ? time_ / steps_ : 0; }  // 0 before the first step
  double left(i64 steps) const;                                            // seconds for this many steps

 private:
  double steps_ = 0, time_ = 0;       // exponentially weighted
  double stepping_ = 0, paused_ = 0;  // seconds since the start
};

}  // namespace redco
