#include "comm/in_flight.h"

#include <algorithm>

#include "base/background.h"
#include "comm/calls.h"

namespace redco {

namespace {
// Between two polls of kernels. A poll of Open MPI with nothing to do costs about 1 us over TCP.
constexpr std::chrono::microseconds kInterval{50};
}  // namespace

void InFlight::add(Calls& group) {
  if (std::find(groups_.begin(), groups_.end(), &group) == groups_.end()) groups_.push_back(&group);
  background::set({&poll, this});
}

void InFlight::remove(Calls& group) noexcept { std::erase(groups_, &group); }

bool InFlight::progress() {
  if (running_) return false;  // sums compute with kernels, which poll
  struct Running {
    bool& flag;
    explicit Running(bool& f) : flag(f) { flag = true; }
    ~Running() { flag = false; }
  } const running(running_);
  bool any = false;
  for (std::size_t i = 0; i < groups_.size();) {
    Calls& group = *groups_[i];
    any = group.progress() || any;
    if (i < groups_.size() && groups_[i] == &group) ++i;  // else it has removed itself
  }
  return any;
}

void InFlight::look() {
  const std::vector<Calls*> groups = groups_;
  for (Calls* g : groups) g->look();
}

void InFlight::rethrow() {
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

void InFlight::settle() noexcept {
  if (groups_.empty() && background::get().of == this) background::set({});
}

void InFlight::poll(void* self) noexcept {
  InFlight& f = *static_cast<InFlight*>(self);
  const auto now = std::chrono::steady_clock::now();
  if (now - f.polled_ < kInterval) return;
  try {
    f.progress();
  } catch (...) {
    if (!f.error_) f.error_ = std::current_exception();
  }
  f.polled_ = std::chrono::steady_clock::now();
  f.settle();
}

}  // namespace redco
