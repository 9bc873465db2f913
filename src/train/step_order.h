// The order of an epoch's examples, optionally grouped by length.
#pragma once

#include <array>
#include <vector>

#include "data/index/epoch_order.h"
#include "pipeline/pipeline.h"

namespace redco {

// A permutation of an epoch's positions, computed from the order and the lengths only: the same on every
// rank, without state to restore. Not thread-safe.
//
// Grouped (version 1): the epoch's order is divided into pools of 64 batches. A pool's examples are sorted by
// length + target_length, the longest first; the sort is stable. The pool's full batches are then taken in
// the EpochOrder of (number of batches, seed, epoch x 2^32 + pool); the remainder of the last pool follows.
// So the lengths of successive batches are random, and each epoch differs from the next.
class StepOrder {
 public:
  // `data` must outlive the order. With grouped, `batch` is the global batch size.
  StepOrder(const Dataset& data, u64 seed, u64 epoch, bool grouped, i64 batch);
  i64 at(i64 position) const;

 private:
  static constexpr i64 kPool = 64;  // batches
  const std::vector<i64>& pool(i64 number) const;

  const Dataset* data_;
  EpochOrder order_;
  u64 seed_, epoch_;
  i64 batch_;  // 0: not grouped
  // The pools of the current step and the next.
  struct Pool {
    i64 number = -1;
    std::vector<i64> examples;
  };
  mutable std::array<Pool, 2> pools_;
};

}  // namespace redco
