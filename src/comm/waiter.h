// The pause between two polls of a wait.
#pragma once

#include <sched.h>

#include <chrono>
#include <thread>

namespace redco {

// The first 50 us spin. Then sched_yield offers the core to other threads. As soon as others use it, this
// wait and all waits of the next second sleep between polls instead. Linux gives a sleeping thread the core
// soon after the message arrives; a thread that yields repeatedly loses its turn each time (Linux 6.18 and
// later), and one that spins uses up its time slice. A wait for short messages sleeps after 20 ms in any
// case, when another 100 us do not matter.
class Waiter {
 public:
  using Clock = std::chrono::steady_clock;
  Waiter(bool short_messages, Clock::time_point began) : short_(short_messages), began_(began) {}
  // Something has moved: a new wait begins.
  void restart() {
    began_ = Clock::now();
    looked_ = {};
  }
  void pause() {
    const auto now = Clock::now();
    const auto waited = now - began_;
    if (waited < kSpin) return;
    if (now < shared_until) {
      std::this_thread::sleep_for(kShortPause);
    } else if (short_ && waited > kAwake) {
      std::this_thread::sleep_for(kPause);
    } else {
      sched_yield();
      if (const auto after = Clock::now(); after - now > kTaken)
        shared_until = after + std::chrono::seconds(1);
    }
  }
  // True about ten times a second in a long wait.
  bool time_to_look() {
    const auto waited = Clock::now() - began_;
    if (waited < looked_ + kLook) return false;
    looked_ = waited;
    return true;
  }

 private:
  static constexpr std::chrono::microseconds kSpin{50}, kShortPause{20}, kPause{100}, kTaken{100};
  static constexpr std::chrono::milliseconds kAwake{20}, kLook{100};
  static inline thread_local Clock::time_point shared_until;
  bool short_;
  Clock::time_point began_;
  Clock::duration looked_{};
};

}  // namespace redco
