// Profile: what one rank did during some steps, as events with a begin and an end. Written as a Chrome trace,
// which ui.perfetto.dev and chrome://tracing show.
#pragma once

#include <chrono>
#include <mutex>
#include <string>
#include <vector>

#include "base/types.h"

namespace redco {

struct ProfileEvent {
  // collective: the wait for one. transfer: from its start to its end, also while ops run; the only events
  // that may overlap others in part.
  enum class Kind : std::uint8_t { phase, op, collective, kernel, transfer };
  Kind kind = Kind::op;
  const char* name = "";                // literals, or texts that outlive the profile
  const char *phase = "", *scope = "";  // Context::phase and Context::scope
  const char* axis = "";                // collectives, transfers
  i64 begin = 0, end = 0;               // ns since the profile began
  i64 flops = 0, bytes = 0;
};

class Profile {
 public:
  using Clock = std::chrono::steady_clock;
  i64 at(Clock::time_point t) const {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(t - begin_).count();
  }
  i64 now() const { return at(Clock::now()); }
  // Events of a thread but transfers are nested: two of them never overlap in part. Any thread may add one.
  void add(const ProfileEvent& e) {
    std::lock_guard lock(mutex_);
    events_.push_back(e);
  }
  // The bytes that the arena has handed out now.
  void memory(i64 in_use) { memory_.push_back({now(), in_use}); }

  const std::vector<ProfileEvent>& events() const { return events_; }
  // Time of each event without the events inside it, in ns. Kernels count as part of their op; transfers are
  // apart.
  std::vector<i64> self_times() const;
  i64 memory_peak() const;
  // JSON of the Trace Event Format; `rank` is the process id in it.
  std::string chrome_trace(int rank) const;

 private:
  struct Sample {
    i64 at, bytes;
  };
  Clock::time_point begin_ = Clock::now();
  std::mutex mutex_;  // of the events
  std::vector<ProfileEvent> events_;
  std::vector<Sample> memory_;
};

// A phase of a step, if the current context has a profile: the time of its C++ scope.
class ProfilePhase {
 public:
  explicit ProfilePhase(const char* name);
  ~ProfilePhase();
  ProfilePhase(const ProfilePhase&) = delete;
  ProfilePhase& operator=(const ProfilePhase&) = delete;

 private:
  const char* name_;
  i64 begin_ = 0;
};

}  // namespace redco
