// The order in which an epoch visits its examples, and the examples of each step. Computed from (seed, epoch,
// position) only: nothing is stored, and a resumed job has nothing to restore.
#pragma once

#include <array>
#include <utility>
#include <vector>

#include "base/types.h"

namespace redco {

// Version of EpochOrder's algorithm; stored in checkpoints, raised when an order changes.
inline constexpr u32 kShuffleVersion = 1;

// A permutation of 0..n-1.
//
// Version 1: an unbalanced Feistel network over b = ceil(log2 n) bits, with 16 half-rounds that alternate
// between the lower b - b/2 and the upper b/2 bits. Half-round r xors one side with the upper bits of a
// 64-bit mix (splitmix64's finalizer) of the other side and the r-th key. The keys are splitmix64's stream
// from a mix of seed and epoch. Values of n and above are mapped again until they fall below n (cycle
// walking, Black and Rogaway 2002): fewer than two mappings on average, since 2^b < 2 n.
class EpochOrder {
 public:
  // REQUIRES n >= 0. Without shuffle the order is the identity.
  EpochOrder(i64 n, u64 seed, u64 epoch, bool shuffle = true);

  i64 size() const { return n_; }

  // The example at `position`. REQUIRES 0 <= position < size().
  i64 at(i64 position) const;
  // The examples at positions begin to end - 1: those of at(), in less than half the time.
  // REQUIRES 0 <= begin <= end <= size().
  std::vector<i64> range(i64 begin, i64 end) const;

 private:
  u64 mapped(u64 value) const;  // once by the network
  void two_rounds(std::size_t r, u64& low, u64& high) const;

  static constexpr int kRounds = 16;
  i64 n_;
  bool shuffle_;
  int low_bits_, high_bits_;
  std::array<u64, kRounds> keys_;
};

// Global batches of an epoch's order: step s takes the positions [s * batch, (s + 1) * batch); the last step
// of an epoch takes the remainder. Steps are counted from 0, over all epochs.
class StepPlan {
 public:
  // UsageError unless both are at least 1.
  StepPlan(i64 n_examples, i64 global_batch_size);

  struct Place {
    i64 epoch, step_in_epoch;
    i64 begin, end;  // positions in the epoch's order
  };

  i64 steps_per_epoch() const { return steps_; }
  Place place(i64 step) const;

  // The examples consumed before `step`.
  i64 consumed(i64 step) const;

 private:
  i64 n_, batch_, steps_;
};

}  // namespace redco
