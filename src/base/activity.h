// What this process does, as the watchdog (launch/watch/watchdog.h) sees it: a counter of progress, the
// phase, the step, and whether the main thread waits. One set of values per process; lock-free; any thread
// may call these functions.
//
// Long work ticks in pieces: each op, each kernel loop, each system call on a file, each block of text. A
// process whose counter does not change for fault.timeout counts as stuck, unless it waits for other ranks or
// is idle.
#pragma once

#include <atomic>
#include <string>

#include "base/types.h"

namespace redco::activity {

enum class State : std::uint8_t {
  working,  // must tick
  waiting,  // waits for other ranks; does not tick
  idle      // waits for a person or for input from outside, for any length of time
};

// The values at one moment. `phase` and `waits_for` are string literals.
struct Snapshot {
  u64 ticks = 0;
  State state = State::working;
  const char* phase = "start";
  i64 step = -1;               // -1: no step yet
  const char* waits_for = "";  // name of the collective that it waits for
  u64 waits = 0;               // number of waits for other ranks begun so far
};
Snapshot now() noexcept;

namespace detail {
inline std::atomic<u64> ticks{0};
}
// Records progress. Costs one relaxed atomic increment.
inline void tick() noexcept { detail::ticks.fetch_add(1, std::memory_order_relaxed); }

void set_step(i64 step) noexcept;

// Where a user's code is now ("mine.py:33 in loss"), for the message about a process that makes no progress;
// "" if no function is set. It may block, so give it a thread. REQUIRES: the function may be called on any
// thread.
void set_place(std::string (*place)()) noexcept;
std::string place();

// Sets the phase for the lifetime of the object. REQUIRES: a string literal of letters and spaces.
class Phase {
 public:
  explicit Phase(const char* name) noexcept;
  ~Phase();
  Phase(const Phase&) = delete;
  Phase& operator=(const Phase&) = delete;

 private:
  const char* before_;
};

// Marks the main thread as waiting for other ranks during the object's lifetime. REQUIRES: a string literal.
class Wait {
 public:
  explicit Wait(const char* what) noexcept;
  ~Wait();
  Wait(const Wait&) = delete;
  Wait& operator=(const Wait&) = delete;
};

// Marks the main thread as idle (waiting for a person or for input from outside) during the object's
// lifetime.
class Idle {
 public:
  Idle() noexcept;
  ~Idle();
  Idle(const Idle&) = delete;
  Idle& operator=(const Idle&) = delete;
};

}  // namespace redco::activity
