// Whether other work takes the cores of a rank's threads. A loop with a thread per core ends when its slowest
// thread ends, and one that waits for its core makes all wait. If the limit is memory, one thread is then
// faster than two.
#pragma once

#include "base/types.h"

namespace redco::kernels {

// Looks at how often the threads of this process had to leave a core that they wanted to keep.
class Contention {
 public:
  // now: seconds. switches: such events since the start of the process.
  Contention(double now, i64 switches) : begin_(now), switches_(switches) {}
  // Looks at windows of kWindow seconds. After one with more than kMany events per second there is contention
  // for kPause seconds, and for twice as long, up to kLongest, if the next window is no better.
  void update(double now, i64 switches);
  // Whether one thread is faster.
  bool found() const { return found_; }

  static constexpr double kWindow = 0.05, kPause = 0.5, kLongest = 4, kMany = 300;

 private:
  bool found_ = false;
  double begin_;  // of the window or pause
  i64 switches_;  // at its begin
  double pause_ = kPause;
};

// Of the calling thread's loops; cheap, to be asked before every loop.
bool contended();

}  // namespace redco::kernels
