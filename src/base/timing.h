// Time measured, and what is made of it.
#pragma once

#include <vector>

#include "base/types.h"

namespace redco {

// Seconds of a clock that never goes back; its zero means nothing.
double seconds();

// Seconds since 1970.
double wall_seconds();

// The middle value, or the mean of the two in the middle. REQUIRES: not empty.
double median(std::vector<double> values);

// How long the steps that are left will take. Recent steps weigh more (a time constant of a minute, or of 20
// steps where those take longer), so that it follows a machine that slows down; pauses between steps
// (evaluations, saves) count by their share of the time so far.
class Pace {
 public:
  void step(i64 n, double seconds);  // n steps took so long together, pauses not counted
  void pause(double seconds);
  double step_seconds() const { return steps_ > 0 ? time_ / steps_ : 0; }  // 0 before the first
  double left(i64 steps) const;                                            // seconds

 private:
  double steps_ = 0, time_ = 0;       // weighted
  double stepping_ = 0, paused_ = 0;  // since the beginning
};

}  // namespace redco
