// What this process does, for the watchdog (launch/watchdog.h): a counter of progress, the phase, the step,
// and whether the main thread waits. Process-wide, lock-free, callable from every thread.
//
// Whatever can take long ticks in pieces: each op, each kernel loop, each system call on a file, each block
// of text. A process whose counter stands still for fault.timeout counts as stuck, unless it waits for other
// ranks or is idle.
#pragma once

#include <atomic>

#include "base/types.h"

namespace redco::activity {

enum class State : std::uint8_t {
  working,  // must tick
  waiting,  // for other ranks: does not tick
  idle      // for a person, or for input from outside: may take any time
};

// At one moment. `phase` and `waits_for` are string literals.
struct Snapshot {
  u64 ticks = 0;
  State state = State::working;
  const char* phase = "start";
  i64 step = -1;               // -1: no step yet
  const char* waits_for = "";  // the collective
  u64 waits = 0;               // how many waits for other ranks have begun
};
Snapshot now() noexcept;

namespace detail {
inline std::atomic<u64> ticks{0};
}
// Progress. Costs one relaxed atomic increment.
inline void tick() noexcept { detail::ticks.fetch_add(1, std::memory_order_relaxed); }

void set_step(i64 step) noexcept;

// The phase while it lives. REQUIRES: a string literal of letters and spaces.
class Phase {
 public:
  explicit Phase(const char* name) noexcept;
  ~Phase();
  Phase(const Phase&) = delete;
  Phase& operator=(const Phase&) = delete;

 private:
  const char* before_;
};

// The main thread waits for other ranks while it lives. REQUIRES: a string literal.
class Wait {
 public:
  explicit Wait(const char* what) noexcept;
  ~Wait();
  Wait(const Wait&) = delete;
  Wait& operator=(const Wait&) = delete;
};

// The main thread waits for a person, or for input from outside, while it lives.
class Idle {
 public:
  Idle() noexcept;
  ~Idle();
  Idle(const Idle&) = delete;
  Idle& operator=(const Idle&) = delete;
};

}  // namespace redco::activity
