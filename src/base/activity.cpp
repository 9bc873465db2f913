#include "base/activity.h"

namespace redco::activity {

namespace {
std::atomic<State> g_state{State::working};
std::atomic<const char*> g_phase{"start"}, g_waits_for{""};
std::atomic<i64> g_step{-1};
std::atomic<u64> g_waits{0};
std::atomic<std::string (*)()> g_place{nullptr};
}  // namespace

Snapshot now() noexcept {
  Snapshot s;
  s.ticks = detail::ticks.load(std::memory_order_relaxed);
  s.state = g_state.load(std::memory_order_relaxed);
  s.phase = g_phase.load(std::memory_order_relaxed);
  s.step = g_step.load(std::memory_order_relaxed);
  s.waits_for = g_waits_for.load(std::memory_order_relaxed);
  s.waits = g_waits.load(std::memory_order_relaxed);
  return s;
}

void set_step(i64 step) noexcept { g_step.store(step, std::memory_order_relaxed); }

void set_place(std::string (*place)()) noexcept { g_place.store(place); }
std::string place() {
  const auto f = g_place.load();
  return f ? f() : "";
}

Phase::Phase(const char* name) noexcept : before_(g_phase.exchange(name, std::memory_order_relaxed)) {
  tick();
}
Phase::~Phase() {
  g_phase.store(before_, std::memory_order_relaxed);
  tick();
}

// Ticks at both ends, so that the time before a wait does not count towards the time after it.
Wait::Wait(const char* what) noexcept {
  tick();
  g_waits_for.store(what, std::memory_order_relaxed);
  g_waits.fetch_add(1, std::memory_order_relaxed);
  g_state.store(State::waiting, std::memory_order_relaxed);
}
Wait::~Wait() {
  tick();
  g_state.store(State::working, std::memory_order_relaxed);
}

Idle::Idle() noexcept { g_state.store(State::idle, std::memory_order_relaxed); }
Idle::~Idle() {
  tick();
  g_state.store(State::working, std::memory_order_relaxed);
}

}  // namespace redco::activity
