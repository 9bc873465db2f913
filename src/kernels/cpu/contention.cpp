#include "kernels/cpu/contention.h"

#include <sys/resource.h>

#include <algorithm>

#include "base/timing.h"

namespace redco::kernels {

bool Contention::update(double now, i64 switches) {
  const double passed = now - begin_;
  if (started_ && passed < (contended_ ? pause_ : kWindow)) return contended_;
  if (started_ && !contended_) {
    const double many = static_cast<double>(switches - switches_) / passed;
    contended_ = many > kMany;
    if (!contended_) pause_ = kPause;
  } else if (contended_) {
    contended_ = false;
    pause_ = std::min(2 * pause_, kLongest);
  }
  started_ = true;
  begin_ = now;
  switches_ = switches;
  return contended_;
}

bool contended() {
  constexpr int kLoops = 64;  // between two looks, which take about a microsecond
  struct Looks {
    Contention contention;
    int loops = 0;
    bool contended = false;
  };
  thread_local Looks looks;
  if (looks.loops++ % kLoops == 0) {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    looks.contended = looks.contention.update(seconds(), usage.ru_nivcsw);
  }
  return looks.contended;
}

}  // namespace redco::kernels
