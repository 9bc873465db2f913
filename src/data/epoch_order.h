// The order in which an epoch visits its examples, and which of them a step takes. Pure arithmetic on
// (seed, epoch, position): nothing is stored, nothing is to be restored when a job is resumed.
#pragma once

#include <array>
#include <utility>

#include "base/types.h"

namespace redco {

// The algorithm of EpochOrder; recorded in checkpoints and raised whenever an order could change.
inline constexpr u32 kShuffleVersion = 1;

// A permutation of 0..n-1.
//
// Version 1: an unbalanced Feistel network over b = ceil(log2 n) bits, the lower b - b/2 and the upper b/2
// bits taking turns for 16 half-rounds; half-round r xors one side with the upper bits of a 64-bit mix
// (splitmix64's finalizer) of the other side and the r-th key; keys are splitmix64's stream from a mix of
// seed and epoch. Values of n and above are walked on until they fall below n (cycle walking, Black and
// Rogaway 2002): fewer than two rounds on average, since 2^b < 2 n.
class EpochOrder {
 public:
  // REQUIRES n >= 0. Without shuffle it is the identity.
  EpochOrder(i64 n, u64 seed, u64 epoch, bool shuffle = true);

  i64 size() const { return n_; }

  // The example at `position`. REQUIRES 0 <= position < size().
  i64 at(i64 position) const;

 private:
  static constexpr int kRounds = 16;
  i64 n_;
  bool shuffle_;
  int low_bits_, high_bits_;
  std::array<u64, kRounds> keys_;
};

// Global batches of an epoch's order: step s takes the positions [s * batch, (s + 1) * batch), the last one
// of an epoch what is left. Steps are counted from 0, over all epochs.
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

  // Examples consumed before `step`, and back. step_after is a ContentsError where no step of this plan
  // begins there: the checkpoint is of another data size or global batch size.
  i64 consumed(i64 step) const;
  i64 step_after(i64 consumed) const;

 private:
  i64 n_, batch_, steps_;
};

}  // namespace redco
