// The pieces of a loop, for threads that end at different times.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>

#include "base/types.h"

namespace redco::kernels {

// Each thread begins with its own share of neighbours, the same one in each loop, since the cache of its core
// may still hold what it wrote. Then it takes the rest of the others' shares.
class Shares {
 public:
  // n pieces for `threads` threads. From kMost threads on, some have a share together.
  Shares(i64 n, int threads) : count_(std::min(threads, kMost)) {
    for (int s = 0; s < count_; ++s) {
      shares_[at(s)].next.store(n * s / count_, std::memory_order_relaxed);
      shares_[at(s)].end = n * (s + 1) / count_;
    }
  }
  // Calls f(i) for each piece that is left for this thread.
  template <class F>
  void take(int thread, const F& f) {
    for (int s = 0; s < count_; ++s) {
      Share& share = shares_[at((thread + s) % count_)];
      for (i64 i; (i = share.next.fetch_add(1, std::memory_order_relaxed)) < share.end;) f(i);
    }
  }

 private:
  static constexpr int kMost = 16;
  struct alignas(64) Share {
    std::atomic<i64> next;
    i64 end;
  };
  static std::size_t at(int s) { return static_cast<std::size_t>(s); }
  int count_;
  std::array<Share, kMost> shares_;  // NOLINT: written above
};

}  // namespace redco::kernels
