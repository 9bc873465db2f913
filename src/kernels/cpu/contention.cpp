#include "kernels/cpu/contention.h"

#include <sys/resource.h>

#include <algorithm>

#include "base/timing.h"

namespace redco::kernels {

void Contention::update(double now, i64 switches) {
  const double passed = now - begin_;
  if (passed < (found_ ? pause_ : kWindow)) return;
  if (found_) {
    found_ = false;
    pause_ = std::min(2 * pause_, kLongest);
  } else {
    found_ = static_cast<double>(switches - switches_) / passed > kMany;
    if (!found_) pause_ = kPause;
  }
  begin_ = now;
  switches_ = switches;
}

namespace {

i64 involuntary_switches() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_nivcsw;
}

}  // namespace

bool contended() {
  constexpr int kLoops = 64;  // between two looks, which take about a microsecond
  thread_local Contention contention(seconds(), involuntary_switches());
  thread_local int loops = 0;
  if (++loops % kLoops == 0) contention.update(seconds(), involuntary_switches());
  return contention.found();
}

}  // namespace redco::kernels
