// InFlight: the groups of one rank that have calls in flight. All of them proceed together: in each wait, and
// whenever a long kernel polls (base/background.h). So a rank that waits in one group still answers the
// others.
#pragma once

#include <chrono>
#include <exception>
#include <vector>

namespace redco {

class Calls;

class InFlight {
 public:
  // From now on the calling thread's kernels poll.
  void add(Calls& group);
  void remove(Calls& group) noexcept;
  bool none() const { return groups_.empty(); }

  // Sends and receives without waiting. Returns whether a byte moved. Throws the error of a group that fails.
  bool progress();
  // In a long wait; see Transport::look.
  void look();
  // Throws an error that was found in a kernel, where it could not be thrown; once.
  void rethrow();
  // The calling thread has waited, or given up: if nothing is in flight, its kernels no longer poll.
  void settle() noexcept;

 private:
  static void poll(void* self) noexcept;
  std::vector<Calls*> groups_;
  std::exception_ptr error_;
  std::chrono::steady_clock::time_point polled_;
  bool running_ = false;
};

}  // namespace redco
