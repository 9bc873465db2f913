// Work that goes on while the thread of a rank computes: messages to other ranks. Long loops call poll()
// between their pieces; comm/in_flight.cpp sets what it does while calls are in flight.
//
// Kept for each thread: the threads of a pool that are not of a rank have none. When and how often it is
// called changes no result.
#pragma once

namespace redco::background {

struct Hook {
  void (*run)(void* of) noexcept = nullptr;
  void* of = nullptr;
};

namespace detail {
inline constinit thread_local Hook hook;
}

// Costs a test of a pointer if nothing is set.
inline void poll() noexcept {
  if (const Hook& h = detail::hook; h.run) h.run(h.of);
}
// For the calling thread. REQUIRES: it is reset before `of` ends.
inline void set(const Hook& h) noexcept { detail::hook = h; }
inline const Hook& get() noexcept { return detail::hook; }

}  // namespace redco::background
